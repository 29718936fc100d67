/**
 * The only way to the disk. Everything that mmmq keeps goes through this port, so that a test can put a disk behind it that fails, tears
 * and forgets. Each verb is one system call or a fixed small run of them; nothing is buffered, repeated or repaired below this line.
 *
 * Every verb rejects with a {@link FileError} that names the operation, the path and the operating system's own code.
 */
export interface FileSystem {
  /** Opens a file; a link is not followed but an error (ELOOP). */
  open(path: string, mode: OpenMode): Promise<File>;
  /** The names in a directory, sorted, with what each is; links are `other` and are never followed. */
  list(path: string): Promise<readonly DirectoryEntry[]>;
  /** Makes one directory. @returns false where it was there already */
  makeDirectory(path: string): Promise<boolean>;
  /** Makes the names in a directory durable: a new file or directory is on the disk only after this. */
  syncDirectory(path: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Puts a file under another name of the same directory, in place of what stands there; a crash leaves the one or the other. */
  rename(from: string, to: string): Promise<void>;
  /** What the file system of this path still has for an ordinary user. */
  room(path: string): Promise<Room>;
  /** How the file or directory of this path stands, or undefined where this system has no way to tell. A link is not followed. */
  stamp(path: string): Promise<Stamp | undefined>;
  /** Runs the work of a start or of an end. Nobody waits for this process meanwhile, so that what takes less in all may keep its thread busy. */
  inStart<T>(work: () => Promise<T>): Promise<T>;
}

export const OpenMode = {
  /** An existing file, for reading and writing. Never truncates, never creates. */
  EXISTING: 'existing',
  /** The same for whoever syncs behind each write: a disk may do both in the write, and then tells only the sync of what went wrong. */
  WRITE_THROUGH: 'write-through',
  /** An existing file, for reading only. */
  READING: 'reading',
  /** A new file; one that exists is an error (EEXIST). */
  NEW: 'new',
  /** An existing file as it is, or a new one. */
  EXISTING_OR_NEW: 'existing-or-new',
} as const;
export type OpenMode = (typeof OpenMode)[keyof typeof OpenMode];

export interface Room {
  readonly bytes: number;
  /** New files and directories; Infinity where the file system does not count them. */
  readonly files: number;
}

/**
 * Tells whether anybody has changed a file or directory: for as long as the machine runs, two stamps have the same text only where it is the same
 * file of the same size, and nothing was written to it between them, nor cut, nor, for a directory, a name put there or taken away.
 */
export interface Stamp {
  readonly text: string;
  readonly size: number;
  /** The clock of file systems ticks: in so many milliseconds a further change is certain to show in the text. 0 where it is already. */
  readonly settlesInMs: number;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'other';
}

/** An open file. All reading and writing is positional: there is no cursor that two users could move under each other. */
export interface File {
  readonly path: string;
  /** Does not wait for the disk. */
  size(): Promise<number>;
  /** One read. @returns the bytes read, fewer than asked for at the end of the file and at any other time too; 0 at the end */
  read(buffer: Buffer, position: number): Promise<number>;
  /** One write. @returns the bytes written, possibly fewer than given */
  write(buffer: Buffer, position: number): Promise<number>;
  truncate(size: number): Promise<void>;
  /** Makes the content and the size durable; covers what was written before it started. */
  sync(): Promise<void>;
  /** Takes the exclusive lock that the kernel releases when the process dies. @returns false where another holds it */
  tryLock(): Promise<boolean>;
  /** Whether the file that is open is still the one that stands under its path. */
  isAtItsPath(): Promise<boolean>;
  /** Does not wait for the disk. */
  close(): Promise<void>;
}
