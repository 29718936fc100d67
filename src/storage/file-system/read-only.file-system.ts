import { FileError } from './file.error.js';
import { OpenMode, type DirectoryEntry, type File, type FileSystem, type Room, type Stamp } from './file-system.port.js';

/** A disk that whoever holds it can look at and cannot change: files are opened for reading only, and every verb that changes fails. */
export class ReadOnlyFileSystem implements FileSystem {
  constructor(private readonly fileSystem: FileSystem) {}

  async open(path: string, mode: OpenMode): Promise<File> {
    if (mode === OpenMode.NEW || mode === OpenMode.EXISTING_OR_NEW) throw readOnly('open', path);
    return this.fileSystem.open(path, OpenMode.READING);
  }

  list(path: string): Promise<readonly DirectoryEntry[]> {
    return this.fileSystem.list(path);
  }

  async makeDirectory(path: string): Promise<boolean> {
    throw readOnly('make directory', path);
  }

  async syncDirectory(path: string): Promise<void> {
    throw readOnly('sync directory', path);
  }

  async remove(path: string): Promise<void> {
    throw readOnly('remove', path);
  }

  async rename(from: string): Promise<void> {
    throw readOnly('rename', from);
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
}

function readOnly(operation: string, path: string): FileError {
  return new FileError(operation, path, 'EROFS');
}
