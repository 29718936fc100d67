import { dirname } from 'node:path';
import { ErrorCode, MmmqError } from '../core/index.js';
import { DataDirectoryLock, DataDirectoryLockedError, FileError, type FileSystem } from '../storage/file-system/index.js';
import { DiskQueueLockedError } from './disk-queue-locked.error.js';

/** A directory that this process has, for as long as one of its queues is open. */
interface Claim {
  readonly lock: Promise<DataDirectoryLock>;
  readonly queues: Set<string>;
  /** Set by the last queue that lets go. */
  released?: Promise<void>;
}

/** The queues of one directory share its lock: the lock tells processes apart, and this tells apart the queues of one process. */
const claims = new WeakMap<FileSystem, Map<string, Claim>>();

/** One queue's share of its directory, which no other process has meanwhile. */
export class QueueDirectory {
  private constructor(
    private readonly fileSystem: FileSystem,
    private readonly dir: string,
    private readonly queue: string,
    private readonly lock: DataDirectoryLock,
  ) {}

  /**
   * Makes what is missing of the path, and takes the directory.
   * @param dir absolute
   * @throws {DiskQueueLockedError} another process has it, or this one has opened the queue already
   */
  static async take(fileSystem: FileSystem, dir: string, queue: string): Promise<QueueDirectory> {
    await make(fileSystem, dir);
    const claim = await claimOf(fileSystem, dir);
    if (claim.queues.has(queue)) throw new DiskQueueLockedError(dir, queue, String(process.pid));
    claim.queues.add(queue);
    try {
      return new QueueDirectory(fileSystem, dir, queue, await claim.lock);
    } catch (error) {
      claim.queues.delete(queue);
      if (claim.queues.size === 0) claims.get(fileSystem)?.delete(dir);
      throw error instanceof DataDirectoryLockedError ? new DiskQueueLockedError(dir, queue, error.owner, error) : error;
    }
  }

  /** Says in the lock file who has the directory. Only once the start is certain: a refused start changes nothing. */
  sign(): Promise<void> {
    return this.lock.sign();
  }

  /**
   * Whoever removes the lock file, or moves the directory away, lets another process in; what that one writes this one does not know.
   * @throws {MmmqError} LOCKED
   */
  async assertHeld(): Promise<void> {
    if (await this.lock.isHeld()) return;
    throw new MmmqError(
      ErrorCode.LOCKED,
      `the lock file of ${this.dir} was removed, or the directory was moved, under the disk queue ${this.queue}: another process may have ` +
        'written there since, so this one writes nothing any more; stop both, and start one',
    );
  }

  /** Lets go. The lock goes with the last queue of the directory. */
  leave(): Promise<void> {
    return this.letGo((lock) => lock.release());
  }

  /** Lets go after a refused start: a lock file that was not there before is not there afterwards. */
  withdraw(): Promise<void> {
    return this.letGo((lock) => lock.withdraw());
  }

  private async letGo(release: (lock: DataDirectoryLock) => Promise<void>): Promise<void> {
    const inDisk = claims.get(this.fileSystem);
    const claim = inDisk?.get(this.dir);
    if (claim === undefined || !claim.queues.delete(this.queue) || claim.queues.size > 0) return;
    // A withdrawal that could not remove the file still lets go.
    claim.released = release(this.lock)
      .catch(() => this.lock.release())
      .finally(() => inDisk?.delete(this.dir));
    await claim.released;
  }
}

async function claimOf(fileSystem: FileSystem, dir: string): Promise<Claim> {
  const inDisk = claims.get(fileSystem) ?? new Map<string, Claim>();
  claims.set(fileSystem, inDisk);
  for (;;) {
    const claim = inDisk.get(dir);
    if (claim === undefined) break;
    if (claim.released === undefined) return claim;
    await claim.released.catch(() => undefined);
  }
  const claim: Claim = { lock: DataDirectoryLock.acquire(fileSystem, dir), queues: new Set() };
  inDisk.set(dir, claim);
  return claim;
}

/**
 * Makes what is missing, and each new directory's name durable. What is there may be a link to a directory, and its name may not be durable: a
 * start that was interrupted made it.
 */
async function make(fileSystem: FileSystem, dir: string): Promise<void> {
  try {
    await fileSystem.list(dir);
  } catch (error) {
    if (!(error instanceof FileError) || !error.isMissing || dirname(dir) === dir) throw error;
    await make(fileSystem, dirname(dir));
    await fileSystem.makeDirectory(dir);
    await fileSystem.syncDirectory(dirname(dir));
    return;
  }
  await syncIfAllowed(fileSystem, dirname(dir));
}

/** Where this process may not even look, it has made nothing. */
async function syncIfAllowed(fileSystem: FileSystem, dir: string): Promise<void> {
  try {
    await fileSystem.syncDirectory(dir);
  } catch (error) {
    if (!(error instanceof FileError) || (error.errno !== 'EACCES' && error.errno !== 'EPERM')) throw error;
  }
}
