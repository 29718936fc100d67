import { join } from 'node:path';
import { ErrorCode, MmmqError } from '../../core/index.js';
import { FileError } from './file.error.js';
import { OpenMode, type File, type FileSystem } from './file-system.port.js';
import { readFully, writeFully } from './positional-io.js';

/** The leading dot keeps the name out of the alphabet of topics. */
export const LOCK_FILE_NAME = '.mmmq.lock';

const MAX_OWNER_BYTES = 64;

/** The data directory belongs to another process. */
export class DataDirectoryLockedError extends MmmqError {
  constructor(
    readonly rootDir: string,
    /** The process that has it, or nothing where it did not say. */
    readonly owner: string,
  ) {
    super(
      ErrorCode.LOCKED,
      owner === String(process.pid)
        ? `the data directory ${rootDir} is in use by another broker in this process (${owner}): import BrokerModule once, or give each a directory`
        : `the data directory ${rootDir} is in use by another broker${owner === '' ? '' : ` (process ${owner})`}: ` +
            'stop that one, or give this one a directory of its own (mmmq.broker.storage.root-dir)',
    );
  }
}

/**
 * One broker per data directory. The lock is an open-file-description lock on a file in it: the kernel releases it the moment the process
 * is gone, however it went, and it also tells apart two brokers in one process.
 */
export class DataDirectoryLock {
  private constructor(
    private readonly fileSystem: FileSystem,
    private readonly file: File,
    private readonly madeFile: boolean,
  ) {}

  /** @throws {DataDirectoryLockedError} when another holds it; nothing was changed then */
  static async acquire(fileSystem: FileSystem, rootDir: string): Promise<DataDirectoryLock> {
    const path = join(rootDir, LOCK_FILE_NAME);
    for (;;) {
      const { file, made } = await openLockFile(fileSystem, path);
      try {
        if (!(await file.tryLock())) throw new DataDirectoryLockedError(rootDir, await ownerOf(file));
        // Between our open and our lock the holder before us may have removed the file: a lock on a nameless file excludes nobody.
        if (await file.isAtItsPath()) return new DataDirectoryLock(fileSystem, file, made);
      } catch (error) {
        await file.close();
        throw error;
      }
      await file.close();
    }
  }

  /** Writes who holds the lock, for the message that the next one gets. Only once the start is certain: a refused start changes nothing. */
  async sign(): Promise<void> {
    try {
      await this.file.truncate(0);
      await writeFully(this.file, Buffer.from(`${process.pid}\n`), 0);
    } catch {
      // A full disk: the lock holds without a name on it.
    }
  }

  /** Whether the file that is locked is still the one that the next broker would find. An error of the disk says nothing about that. */
  isHeld(): Promise<boolean> {
    return this.file.isAtItsPath().catch(() => true);
  }

  /** Lets go and leaves the file, as a running broker found it useful. */
  release(): Promise<void> {
    return this.file.close();
  }

  /** Lets go after a refused start: a lock file that was not there before is not there afterwards, unless the disk keeps it from being removed. */
  async withdraw(): Promise<void> {
    // One that stays hinders nobody, and what the start was refused for is what has to be heard of.
    if (this.madeFile) await this.fileSystem.remove(this.file.path).catch(() => undefined);
    await this.file.close();
  }
}

async function openLockFile(fileSystem: FileSystem, path: string): Promise<{ file: File; made: boolean }> {
  try {
    return { file: await fileSystem.open(path, OpenMode.NEW), made: true };
  } catch (error) {
    if (!(error instanceof FileError) || error.errno !== 'EEXIST') throw error;
    return { file: await fileSystem.open(path, OpenMode.EXISTING_OR_NEW), made: false };
  }
}

async function ownerOf(file: File): Promise<string> {
  const bytes = Buffer.alloc(MAX_OWNER_BYTES);
  const length = await readFully(file, bytes, 0);
  const owner = bytes.toString('latin1', 0, length).trim();
  return /^\d+$/.test(owner) ? owner : '';
}
