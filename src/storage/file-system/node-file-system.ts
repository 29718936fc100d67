import * as fs from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tryLock } from 'fs-native-extensions';
import { FileError } from './file.error.js';
import { PromptCalls } from './prompt-calls.js';
import { OpenMode, type DirectoryEntry, type File, type FileSystem, type Room, type Stamp } from './file-system.port.js';

/** A limit on the size of files: the write was refused before anything was done. */
const NO_SUCH_SIZE = 'EFBIG';

/** On macOS only a sync of its own empties the cache of the drive, and Windows has no such flag. */
const WRITES_THROUGH = process.platform === 'linux';

const OPEN_FLAGS: Readonly<Record<OpenMode, number>> = {
  [OpenMode.EXISTING]: fs.constants.O_RDWR | fs.constants.O_NOFOLLOW,
  [OpenMode.WRITE_THROUGH]: fs.constants.O_RDWR | fs.constants.O_NOFOLLOW | (WRITES_THROUGH ? fs.constants.O_DSYNC : 0),
  // A pipe of that name must not keep the process waiting until somebody writes to it.
  [OpenMode.READING]: fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK,
  [OpenMode.NEW]: fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL | fs.constants.O_NOFOLLOW,
  [OpenMode.EXISTING_OR_NEW]: fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW,
};

const MAKING: ReadonlySet<OpenMode> = new Set([OpenMode.NEW, OpenMode.EXISTING_OR_NEW]);
/** A larger part of a file seldom is in memory as a whole. */
const MAX_PROMPT_READ_BYTES = 64 * 1024;

/** The kernel stamps changes by a clock that ticks every 10 ms at the most, */
const CLOCK_TICK_MS = 20;
/** and old file systems keep whole seconds of it. */
const COARSE_CLOCK_TICK_MS = 2_000;

/**
 * The real disk, through Node's callback functions: the promise ones cost nearly twice as much per call. What the kernel answers from its memory
 * about a file that is open or was just listed is asked at once: the way to another thread and back costs many times as much as the call.
 */
export class NodeFileSystem implements FileSystem {
  private readonly promptCalls = new PromptCalls();
  private boot: Promise<string | undefined> | undefined;

  async open(path: string, mode: OpenMode): Promise<File> {
    const inAnotherThread = (): Promise<number> => call('open', path, (done) => fs.open(path, OPEN_FLAGS[mode], 0o644, done));
    const fd = MAKING.has(mode)
      ? await inAnotherThread()
      : await this.promptCalls.make(() => atOnce('open', path, () => fs.openSync(path, OPEN_FLAGS[mode])), inAnotherThread);
    return new NodeFile(path, fd, this.promptCalls, WRITES_THROUGH && mode === OpenMode.WRITE_THROUGH);
  }

  async list(path: string): Promise<readonly DirectoryEntry[]> {
    const found = await this.promptCalls.make<fs.Dirent[]>(
      () => atOnce('list', path, () => fs.readdirSync(path, { withFileTypes: true })),
      () => call('list', path, (done) => fs.readdir(path, { withFileTypes: true }, done)),
    );
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
      atOnce('close directory', path, () => fs.closeSync(fd));
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

  /** By the time of the last change of the inode: unlike all else that is known of a file, no copy brings it along and nobody can set it. */
  async stamp(path: string): Promise<Stamp | undefined> {
    const boot = await (this.boot ??= bootId());
    if (boot === undefined) return undefined;
    const { dev, ino, size, ctimeMs } = await this.promptCalls.make<fs.Stats>(
      () => atOnce('stat', path, () => fs.lstatSync(path)),
      () => call('stat', path, (done) => fs.lstat(path, done)),
    );
    const tickMs = ctimeMs % 1_000 === 0 ? COARSE_CLOCK_TICK_MS : CLOCK_TICK_MS;
    const ageMs = Date.now() - ctimeMs;
    return { text: `${boot} ${dev} ${ino} ${size} ${ctimeMs}`, size, settlesInMs: Math.max(0, tickMs - ageMs) };
  }

  inStart<T>(work: () => Promise<T>): Promise<T> {
    return this.promptCalls.inStart(work);
  }
}

class NodeFile implements File {
  /** What writes through the cache leave to a sync: at first all that others may have left there, then each cut. */
  private leftToSync = 1;
  private synced = 0;
  /** What a write through the cache came upon, for the next sync to tell. */
  private failure: FileError | undefined;

  constructor(
    readonly path: string,
    private readonly fd: number,
    private readonly promptCalls: PromptCalls,
    /** Whether a write is on the disk when it returns: one way to another thread and back instead of two. */
    private readonly isWrittenThrough: boolean,
  ) {}

  async size(): Promise<number> {
    return this.stat().size;
  }

  read(buffer: Buffer, position: number): Promise<number> {
    const inAnotherThread = (): Promise<number> =>
      call('read', this.path, (done) => fs.read(this.fd, buffer, 0, buffer.length, position, done));
    if (buffer.length > MAX_PROMPT_READ_BYTES) return inAnotherThread();
    return this.promptCalls.make(
      () => atOnce('read', this.path, () => fs.readSync(this.fd, buffer, 0, buffer.length, position)),
      inAnotherThread,
    );
  }

  write(buffer: Buffer, position: number): Promise<number> {
    const written = call<number>('write', this.path, (done) => fs.write(this.fd, buffer, 0, buffer.length, position, done));
    return this.isWrittenThrough ? written.catch((error: unknown) => this.failedThrough(error, buffer.length)) : written;
  }

  /** Whether the write failed or the sync in it nobody can tell: it counts as the worse of the two, and the sync behind the write says it. */
  private failedThrough(error: unknown, bytes: number): number {
    if (!(error instanceof FileError) || error.isDiskFull || error.errno === NO_SUCH_SIZE) throw error;
    this.failure = new FileError('sync', this.path, error.errno, error);
    this.leftToSync += 1;
    return bytes;
  }

  truncate(size: number): Promise<void> {
    this.leftToSync += 1;
    return call('truncate', this.path, (done) => fs.ftruncate(this.fd, size, done));
  }

  /** fdatasync: the data and the size that is needed to read it back, without the time stamps. */
  async sync(): Promise<void> {
    const { failure, leftToSync } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
    if (this.isWrittenThrough && leftToSync === this.synced) return;
    await call<void>('sync', this.path, (done) => fs.fdatasync(this.fd, done));
    this.synced = Math.max(this.synced, leftToSync);
  }

  async tryLock(): Promise<boolean> {
    try {
      return tryLock(this.fd);
    } catch (error) {
      throw FileError.from('lock', this.path, error);
    }
  }

  async isAtItsPath(): Promise<boolean> {
    const mine = this.stat();
    try {
      const named = await call<fs.Stats>('stat', this.path, (done) => fs.stat(this.path, done));
      return named.ino === mine.ino && named.dev === mine.dev;
    } catch (error) {
      if (error instanceof FileError && error.isMissing) return false;
      throw error;
    }
  }

  async close(): Promise<void> {
    atOnce('close', this.path, () => fs.closeSync(this.fd));
  }

  private stat(): fs.Stats {
    return atOnce('stat', this.path, () => fs.fstatSync(this.fd));
  }
}

/** Another one each time the machine starts. @returns undefined where the system does not say it in a file, as on macOS */
async function bootId(): Promise<string | undefined> {
  const id = await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => '');
  return id.trim() === '' ? undefined : id.trim();
}

/** A system call that does not wait for the disk. */
function atOnce<T>(operation: string, path: string, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    throw FileError.from(operation, path, error);
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
