import type { DirectoryEntry, File, FileSystem, OpenMode, Room, Stamp } from '../../src/storage/file-system/index.js';
import { FileError, NodeFileSystem } from '../../src/storage/file-system/index.js';

export type Operation = 'open' | 'write' | 'sync' | 'truncate' | 'read' | 'makeDirectory' | 'syncDirectory' | 'rename' | 'remove' | 'room';

export interface Fault {
  readonly operation: Operation;
  /** Which paths it strikes. */
  readonly path: RegExp;
  readonly errno: string;
  /** How often it strikes before it is over; for ever where it is left out. */
  times?: number;
  /** For a write: so many bytes still come to the disk. */
  readonly bytesWritten?: number;
}

/** The real disk with faults that a test asks for, and a record of the calls that reached it: `write 0000000000000000000.mmm`. */
export class FaultyFileSystem implements FileSystem {
  readonly calls: string[] = [];
  /** The files that were closed, in order. */
  readonly closed: string[] = [];
  readonly faults: Fault[] = [];
  /** Writes and reads move at most so many bytes per call. */
  maxBytesPerCall = Number.POSITIVE_INFINITY;
  /** What the disk says is left, where that is to differ from the truth. */
  left: Partial<Room> = {};
  private readonly real = new NodeFileSystem();

  fail(fault: Fault): () => void {
    this.faults.push(fault);
    return () => {
      this.faults.splice(this.faults.indexOf(fault), 1);
    };
  }

  async open(path: string, mode: OpenMode): Promise<File> {
    this.strike('open', path);
    return this.wrap(await this.real.open(path, mode));
  }

  list(path: string): Promise<readonly DirectoryEntry[]> {
    return this.real.list(path);
  }

  async makeDirectory(path: string): Promise<boolean> {
    this.strike('makeDirectory', path);
    return this.real.makeDirectory(path);
  }

  async syncDirectory(path: string): Promise<void> {
    this.strike('syncDirectory', path);
    await this.real.syncDirectory(path);
  }

  async remove(path: string): Promise<void> {
    this.strike('remove', path);
    await this.real.remove(path);
  }

  async rename(from: string, to: string): Promise<void> {
    this.strike('rename', from);
    await this.real.rename(from, to);
  }

  async room(path: string): Promise<Room> {
    this.strike('room', path);
    return { ...(await this.real.room(path)), ...this.left };
  }

  stamp(path: string): Promise<Stamp | undefined> {
    return this.real.stamp(path);
  }

  inStart<T>(work: () => Promise<T>): Promise<T> {
    return this.real.inStart(work);
  }

  private strike(operation: Operation, path: string): Fault | undefined {
    this.calls.push(`${operation} ${path.slice(path.lastIndexOf('/') + 1)}`);
    const fault = this.faults.find((candidate) => candidate.operation === operation && candidate.path.test(path));
    if (fault === undefined) return undefined;
    if (fault.times !== undefined) {
      fault.times -= 1;
      if (fault.times <= 0) this.faults.splice(this.faults.indexOf(fault), 1);
    }
    if (fault.bytesWritten === undefined) throw new FileError(operation, path, fault.errno);
    return fault;
  }

  private wrap(file: File): File {
    const strike = (operation: Operation): Fault | undefined => this.strike(operation, file.path);
    const clip = (buffer: Buffer): Buffer => buffer.subarray(0, Math.min(buffer.length, this.maxBytesPerCall));
    return {
      path: file.path,
      size: () => file.size(),
      read: async (buffer, position) => {
        strike('read');
        return file.read(clip(buffer), position);
      },
      write: async (buffer, position) => {
        const fault = strike('write');
        if (fault === undefined) return file.write(clip(buffer), position);
        await file.write(buffer.subarray(0, fault.bytesWritten), position);
        throw new FileError('write', file.path, fault.errno);
      },
      truncate: async (size) => {
        strike('truncate');
        await file.truncate(size);
      },
      sync: async () => {
        strike('sync');
        await file.sync();
      },
      tryLock: () => file.tryLock(),
      isAtItsPath: () => file.isAtItsPath(),
      close: () => {
        this.closed.push(file.path.slice(file.path.lastIndexOf('/') + 1));
        return file.close();
      },
    };
  }
}
