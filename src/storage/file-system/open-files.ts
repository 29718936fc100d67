import { ErrorCode, MmmqError } from '../../core/index.js';
import { OpenMode, type File, type FileSystem } from './file-system.port.js';

interface OpenFile {
  readonly file: Promise<File>;
  users: number;
  discarded: boolean;
}

/** Files that are kept open while nobody uses them. Those in use come on top: one or two for each topic that is written or read this moment. */
export const MAX_IDLE_OPEN_FILES = 512;

/**
 * The files that are open, shared by all who use them, so that ten thousand topics do not need ten thousand handles: a file is opened
 * when it is first used and closed when it has been idle the longest and too many are open.
 *
 * A handle that saw a sync fail is to be discarded: what the kernel remembers of the failure belongs to the handles that were open.
 */
export class OpenFiles {
  /** In order of last use. */
  private readonly open = new Map<string, OpenFile>();
  private readonly closing = new Set<Promise<void>>();
  private usersAtClose: (() => void) | undefined;
  private users = 0;
  private closed = false;

  constructor(
    private readonly fileSystem: FileSystem,
    private readonly maxIdle = MAX_IDLE_OPEN_FILES,
  ) {}

  /** Runs `work` on the existing file at `path`. The file stays open at least that long. */
  async use<T>(path: string, work: (file: File) => Promise<T>): Promise<T> {
    // Behind the close another process may own the files. Work that is under way still comes to its end.
    if (this.closed && this.users === 0) throw new MmmqError(ErrorCode.CLOSED, `the broker is stopped and does not touch ${path}`);
    const entry = this.acquire(path);
    try {
      return await work(await entry.file);
    } finally {
      this.release(entry);
    }
  }

  /** Lets go of the handle: the next use opens the file anew. Those who use it now keep it until they are done. */
  discard(path: string): void {
    const entry = this.open.get(path);
    if (entry === undefined) return;
    this.open.delete(path);
    entry.discarded = true;
    if (entry.users === 0) this.close(entry);
  }

  /** Lets those who use a file finish, closes everything, and opens nothing again. */
  async closeAll(): Promise<void> {
    this.closed = true;
    if (this.users > 0) await new Promise<void>((resolve) => (this.usersAtClose = resolve));
    for (const path of this.open.keys()) this.discard(path);
    await Promise.all(this.closing);
  }

  private acquire(path: string): OpenFile {
    let entry = this.open.get(path);
    if (entry === undefined) {
      const opened: OpenFile = { file: this.fileSystem.open(path, OpenMode.EXISTING), users: 0, discarded: false };
      // A failed open must not be remembered: the next use tries again.
      opened.file.catch(() => this.discard(path));
      entry = opened;
    } else {
      this.open.delete(path);
    }
    this.open.set(path, entry);
    entry.users += 1;
    this.users += 1;
    return entry;
  }

  private release(entry: OpenFile): void {
    entry.users -= 1;
    this.users -= 1;
    if (this.users === 0) this.usersAtClose?.();
    if (entry.users > 0) return;
    if (entry.discarded) {
      this.close(entry);
      return;
    }
    if (this.open.size > this.maxIdle) this.closeOldestIdle();
  }

  private closeOldestIdle(): void {
    for (const [path, entry] of this.open) {
      if (entry.users > 0) continue;
      this.discard(path);
      return;
    }
  }

  private close(entry: OpenFile): void {
    // A close that fails leaves nothing to be done: what had to be on the disk was synced before.
    const closed = entry.file.then((file) => file.close()).catch(() => undefined);
    this.closing.add(closed);
    void closed.finally(() => this.closing.delete(closed));
  }
}
