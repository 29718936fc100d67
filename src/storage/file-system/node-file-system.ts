import * as fs from 'node:fs';
import { tryLock } from 'fs-native-extensions';
import { FileError } from './file.error.js';
import { OpenMode, type DirectoryEntry, type File, type FileSystem, type Room } from './file-system.port.js';

const OPEN_FLAGS: Readonly<Record<OpenMode, number>> = {
  [OpenMode.EXISTING]: fs.constants.O_RDWR | fs.constants.O_NOFOLLOW,
  [OpenMode.READING]: fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW,
  [OpenMode.NEW]: fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL | fs.constants.O_NOFOLLOW,
  [OpenMode.EXISTING_OR_NEW]: fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW,
};

/** The real disk, through Node's callback functions: the promise ones cost nearly twice as much per call. */
export class NodeFileSystem implements FileSystem {
  async open(path: string, mode: OpenMode): Promise<File> {
    const fd = await call<number>('open', path, (done) => fs.open(path, OPEN_FLAGS[mode], 0o644, done));
    return new NodeFile(path, fd);
  }

  async list(path: string): Promise<readonly DirectoryEntry[]> {
    const found = await call<fs.Dirent[]>('list', path, (done) => fs.readdir(path, { withFileTypes: true }, done));
    return found
      .map((entry): DirectoryEntry => ({
        name: entry.name,
        kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : 'other',
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async makeDirectory(path: string): Promise<boolean> {
    try {
      await call<void>('make directory', path, (done) => fs.mkdir(path, done));
      return true;
    } catch (error) {
      if (!(error instanceof FileError) || error.errno !== 'EEXIST') throw error;
      const stat = await call<fs.Stats>('stat', path, (done) => fs.lstat(path, done));
      if (!stat.isDirectory()) throw new FileError('make directory', path, 'ENOTDIR', error);
      return false;
    }
  }

  async syncDirectory(path: string): Promise<void> {
    const fd = await call<number>('open directory', path, (done) => fs.open(path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY, done));
    try {
      await call<void>('sync directory', path, (done) => fs.fsync(fd, done));
    } finally {
      await call<void>('close directory', path, (done) => fs.close(fd, done));
    }
  }

  remove(path: string): Promise<void> {
    return call('remove', path, (done) => fs.unlink(path, done));
  }

  rename(from: string, to: string): Promise<void> {
    return call('rename', from, (done) => fs.rename(from, to, done));
  }

  async room(path: string): Promise<Room> {
    const stat = await call<fs.StatsFs>('measure free space', path, (done) => fs.statfs(path, done));
    return { bytes: stat.bavail * stat.bsize, files: stat.files === 0 ? Number.POSITIVE_INFINITY : stat.ffree };
  }
}

class NodeFile implements File {
  constructor(
    readonly path: string,
    private readonly fd: number,
  ) {}

  async size(): Promise<number> {
    return (await this.stat()).size;
  }

  read(buffer: Buffer, position: number): Promise<number> {
    return call('read', this.path, (done) => fs.read(this.fd, buffer, 0, buffer.length, position, done));
  }

  write(buffer: Buffer, position: number): Promise<number> {
    return call('write', this.path, (done) => fs.write(this.fd, buffer, 0, buffer.length, position, done));
  }

  truncate(size: number): Promise<void> {
    return call('truncate', this.path, (done) => fs.ftruncate(this.fd, size, done));
  }

  /** fdatasync: the data and the size that is needed to read it back, without the time stamps. */
  sync(): Promise<void> {
    return call('sync', this.path, (done) => fs.fdatasync(this.fd, done));
  }

  async tryLock(): Promise<boolean> {
    try {
      return tryLock(this.fd);
    } catch (error) {
      throw FileError.from('lock', this.path, error);
    }
  }

  async isAtItsPath(): Promise<boolean> {
    const mine = await this.stat();
    try {
      const named = await call<fs.Stats>('stat', this.path, (done) => fs.stat(this.path, done));
      return named.ino === mine.ino && named.dev === mine.dev;
    } catch (error) {
      if (error instanceof FileError && error.isMissing) return false;
      throw error;
    }
  }

  close(): Promise<void> {
    return call('close', this.path, (done) => fs.close(this.fd, done));
  }

  private stat(): Promise<fs.Stats> {
    return call('stat', this.path, (done) => fs.fstat(this.fd, done));
  }
}

/** One system call as a promise whose rejection says what was done to which path. */
function call<T>(
  operation: string,
  path: string,
  start: (done: (error: NodeJS.ErrnoException | null, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => {
      if (error) reject(FileError.from(operation, path, error));
      else resolve(value as T);
    });
  });
}
