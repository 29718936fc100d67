import { join, resolve } from 'node:path';
import { ErrorCode, MmmqError, shellWord, topicProblem } from '../core/index.js';
import {
  CheckpointStore,
  DataDirectoryLock,
  DataDirectoryLockedError,
  FileError,
  OffsetIndexStore,
  OpenFiles,
  ReadOnlyFileSystem,
  RESERVE_FILE_NAME,
  SegmentStore,
  SYNCED_FILE_NAME,
  type FileSystem,
  type SegmentStores,
} from '../storage/index.js';
import { moveAwayCommand, type Obstacle } from './obstacle.js';

/** The broker's files beside the topics that it can do without, and what it does then. */
const MEANING_OF_FILES: ReadonlyMap<string, string> = new Map([
  [RESERVE_FILE_NAME, 'the broker keeps no room for dead letters and checkpoints on a full disk'],
  [SYNCED_FILE_NAME, 'each start syncs every topic, and takes longer,'],
]);

/** The file system's own, at the root of a volume. */
const LOST_AND_FOUND = 'lost+found';

/** What can be read of a data directory, through handles that can change nothing. */
export class DataDirectory {
  readonly fileSystem: FileSystem;
  readonly stores: SegmentStores;
  readonly checkpoints: CheckpointStore;
  private readonly files: OpenFiles;

  private constructor(
    fileSystem: FileSystem,
    readonly rootDir: string,
  ) {
    this.fileSystem = new ReadOnlyFileSystem(fileSystem);
    this.files = new OpenFiles(this.fileSystem);
    this.stores = { segments: new SegmentStore(this.files), offsetIndexes: new OffsetIndexStore(this.files) };
    this.checkpoints = new CheckpointStore(this.fileSystem, this.files);
  }

  /** Reads with fresh handles, and closes them. The directory is the caller's: locked, or read beside a broker. */
  static async read<T>(fileSystem: FileSystem, dir: string, work: (directory: DataDirectory) => Promise<T>): Promise<T> {
    const directory = new DataDirectory(fileSystem, resolve(dir));
    try {
      return await work(directory);
    } finally {
      await directory.files.closeAll();
    }
  }

  /**
   * Runs `work` while no broker can have the directory.
   * @throws {MmmqError} LOCKED when one has it; IO when the lock cannot be taken
   */
  static async whileLocked<T>(fileSystem: FileSystem, dir: string, work: () => Promise<T>): Promise<T> {
    const rootDir = resolve(dir);
    const lock = await acquire(fileSystem, rootDir);
    try {
      return await work();
    } finally {
      await lock.withdraw();
    }
  }

  /** The directories that can be topics, what is in the place of the reserve, and the paths of what is none of the broker's. */
  async list(): Promise<{ topics: string[]; obstacles: Obstacle[]; leftovers: string[] }> {
    const topics: string[] = [];
    const obstacles: Obstacle[] = [];
    const leftovers: string[] = [];
    for (const entry of await this.fileSystem.list(this.rootDir)) {
      if (entry.kind === 'directory' && topicProblem(entry.name) === undefined) topics.push(entry.name);
      else if (entry.kind !== 'file' && MEANING_OF_FILES.has(entry.name)) obstacles.push(this.inPlaceOf(entry.name));
      else if (!entry.name.startsWith('.') && entry.name !== LOST_AND_FOUND) leftovers.push(join(this.rootDir, entry.name));
    }
    return { topics, obstacles, leftovers };
  }

  private inPlaceOf(name: string): Obstacle {
    const path = join(this.rootDir, name);
    const reason = `it is no ordinary file: ${MEANING_OF_FILES.get(name)} until it is moved away`;
    return { path, reason, remedy: moveAwayCommand(this.rootDir, path) };
  }
}

async function acquire(fileSystem: FileSystem, rootDir: string): Promise<DataDirectoryLock> {
  try {
    return await DataDirectoryLock.acquire(fileSystem, rootDir);
  } catch (error) {
    const beside = `"npx mmmq verify ${shellWord(rootDir)} --live" reads without its lock`;
    if (error instanceof DataDirectoryLockedError) {
      const owner = error.owner === '' ? '' : ` (process ${error.owner})`;
      throw new MmmqError(
        error.code,
        `a broker or another offline tool has the data directory ${rootDir} open${owner}: stop it first; ${beside}`,
        {
          cause: error,
        },
      );
    }
    if (error instanceof FileError && error.errno !== 'ENOENT' && error.errno !== 'ENOTDIR') {
      throw new MmmqError(ErrorCode.IO, `the data directory ${rootDir} cannot be locked (${error.message}); ${beside}`, { cause: error });
    }
    throw error;
  }
}
