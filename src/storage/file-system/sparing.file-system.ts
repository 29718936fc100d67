import { FileError } from './file.error.js';
import type { DirectoryEntry, File, FileSystem, OpenMode, Room, Stamp } from './file-system.port.js';

/** What the operating system says when no handle is left to the process, or to the machine. */
const NO_HANDLE_ERRNOS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);

/** A disk that gives up handles which are not needed at the moment rather than fail for want of one. It tries once more, and no other error. */
export class SparingFileSystem implements FileSystem {
  /** @param freeHandles closes what nobody uses. @returns whether a handle became free */
  constructor(
    private readonly fileSystem: FileSystem,
    private readonly freeHandles: () => Promise<boolean>,
  ) {}

  open(path: string, mode: OpenMode): Promise<File> {
    return this.withHandle(() => this.fileSystem.open(path, mode));
  }

  list(path: string): Promise<readonly DirectoryEntry[]> {
    return this.withHandle(() => this.fileSystem.list(path));
  }

  makeDirectory(path: string): Promise<boolean> {
    return this.fileSystem.makeDirectory(path);
  }

  syncDirectory(path: string): Promise<void> {
    return this.withHandle(() => this.fileSystem.syncDirectory(path));
  }

  remove(path: string): Promise<void> {
    return this.fileSystem.remove(path);
  }

  rename(from: string, to: string): Promise<void> {
    return this.fileSystem.rename(from, to);
  }

  room(path: string): Promise<Room> {
    return this.fileSystem.room(path);
  }

  stamp(path: string): Promise<Stamp | undefined> {
    return this.fileSystem.stamp(path);
  }

  inStart<T>(work: () => Promise<T>): Promise<T> {
    return this.fileSystem.inStart(work);
  }

  private async withHandle<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      const isOutOfHandles = error instanceof FileError && NO_HANDLE_ERRNOS.has(error.errno);
      if (!isOutOfHandles || !(await this.freeHandles())) throw error;
      return await call();
    }
  }
}
