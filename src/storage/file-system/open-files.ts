import { ErrorCode, MmmqError } from '../../core/index.js';
import { OpenMode, type File, type FileSystem } from './file-system.port.js';
import { SparingFileSystem } from './sparing.file-system.js';

interface OpenFile {
  readonly path: string;
  readonly file: Promise<File>;
  users: number;
  discarded: boolean;
}

/** Files that are kept open while nobody uses them. Those in use come on top: one or two for each topic that is written or read this moment. */
export const MAX_IDLE_OPEN_FILES = 512;

/**
 * So many idle files give up their handles when one is missing: enough for what is under way, few enough that the others need not be opened
 * anew. And so many may be idle however often that happens.
 */
const IDLE_CLOSED_AT_A_TIME = 64;

/**
 * The files that are open, shared by all who use them, so that ten thousand topics do not need ten thousand handles: a file is opened
 * when it is first used and closed when it has been idle the longest and too many are idle, or when handles run out.
 *
 * A handle that saw a sync fail is to be discarded: what the kernel remembers of the failure belongs to the handles that were open.
 */
export class OpenFiles {
  /** The disk, for whatever else takes a handle: where none is free, idle files are closed and it is tried once more. */
  readonly fileSystem: FileSystem;
  private readonly open = new Map<string, OpenFile>();
  /** Those that nobody uses, in order of last use. */
  private readonly idle = new Set<OpenFile>();
  private readonly closing = new Set<Promise<void>>();
  private usersAtClose: (() => void) | undefined;
  private users = 0;
  private closed = false;

  constructor(
    fileSystem: FileSystem,
    private maxIdle = MAX_IDLE_OPEN_FILES,
  ) {
    this.fileSystem = new SparingFileSystem(fileSystem, () => this.closeSomeIdle());
  }

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
    if (entry !== undefined) this.letGo(entry);
  }

  /** Lets those who use a file finish, closes everything, and opens nothing again. */
  async closeAll(): Promise<void> {
    this.closed = true;
    if (this.users > 0) await new Promise<void>((resolve) => (this.usersAtClose = resolve));
    for (const entry of this.open.values()) this.letGo(entry);
    await Promise.all(this.closing);
  }

  private acquire(path: string): OpenFile {
    let entry = this.open.get(path);
    if (entry === undefined) {
      const opened: OpenFile = { path, file: this.fileSystem.open(path, OpenMode.WRITE_THROUGH), users: 0, discarded: false };
      // A failed open must not be remembered: the next use tries again.
      opened.file.catch(() => this.letGo(opened));
      this.open.set(path, opened);
      entry = opened;
    }
    this.idle.delete(entry);
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
    this.idle.add(entry);
    if (this.idle.size > this.maxIdle) this.closeIdle(1);
  }

  /** Frees handles. @returns whether there were any, once they are free */
  private async closeSomeIdle(): Promise<boolean> {
    this.closeIdle(IDLE_CLOSED_AT_A_TIME);
    // Connections need handles too and cannot ask for them: idle files do not grow back to where there was none left.
    this.maxIdle = Math.min(this.maxIdle, Math.max(this.idle.size, IDLE_CLOSED_AT_A_TIME));
    const closing = [...this.closing];
    await Promise.all(closing);
    return closing.length > 0;
  }

  /** Closes so many of those that were idle the longest. */
  private closeIdle(count: number): void {
    let left = count;
    for (const entry of this.idle) {
      if (left === 0) return;
      this.letGo(entry);
      left -= 1;
    }
  }

  private letGo(entry: OpenFile): void {
    if (entry.discarded) return;
    entry.discarded = true;
    this.open.delete(entry.path);
    this.idle.delete(entry);
    if (entry.users === 0) this.close(entry);
  }

  private close(entry: OpenFile): void {
    // A close that fails leaves nothing to be done: what had to be on the disk was synced before.
    const closed = entry.file.then((file) => file.close()).catch(() => undefined);
    this.closing.add(closed);
    void closed.finally(() => this.closing.delete(closed));
  }
}
