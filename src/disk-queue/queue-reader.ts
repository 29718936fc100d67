import { FileError, OpenMode, readFully, type File } from '../storage/file-system/index.js';
import { CorruptFileError } from './corrupt-file.error.js';
import type { DataFiles } from './data-files.js';
import type { FilePosition } from './file-position.js';
import type { LeftFile, LeftFiles } from './left-files.js';
import { isMessageLength, LENGTH_BYTES, type MessageLimits } from './record.codec.js';

/** What is read at once. Messages are parts of such a chunk, not copies. */
const CHUNK_BYTES = 64 * 1024;
const NOTHING = Buffer.alloc(0);
/** So often a disk may fail to read one place before the file counts as one that cannot be read. */
const MAX_READ_ERRORS = 3;

/**
 * The beginning of the queue: goes from record to record and from file to file, and reads ahead.
 *
 * The cursor stands before the next record and never behind the last one of a file that is complete: it moves to the next file at once,
 * so that no position that is stored means the end of a file that has a next one.
 */
export class QueueReader {
  private chunk = NOTHING;
  /** Where the cursor stands in the chunk. */
  private at = 0;
  private handle: { readonly file: number; readonly opened: File } | undefined;
  /** Where files end that were completed since the start; others end where they end. */
  private readonly ends = new Map<number, number>();
  /** Grows when the cursor jumps: what was read for the place before is of no use then. */
  private jumps = 0;
  private readErrors = 0;
  private closed: Promise<unknown> = Promise.resolve();

  /** @param later the files behind the cursor's, ascending; the last one is the one that is written to, or the cursor's is */
  constructor(
    private readonly files: DataFiles,
    private readonly limits: MessageLimits,
    private here: FilePosition,
    private readonly later: number[],
    private readonly left: LeftFiles,
  ) {}

  /** Before the next record. */
  get cursor(): FilePosition {
    return this.here;
  }

  /** The files from the cursor's on. */
  get filesAhead(): readonly number[] {
    return [this.here.file, ...this.later];
  }

  /** The next message, where it has been read already. */
  peek(): Buffer | undefined {
    const { chunk, at } = this;
    if (chunk.length - at < LENGTH_BYTES) return undefined;
    const length = chunk.readInt32BE(at);
    const start = at + LENGTH_BYTES;
    return isMessageLength(length, this.limits) && start + length <= chunk.length ? chunk.subarray(start, start + length) : undefined;
  }

  /** Moves behind the message that {@link peek} gave. */
  pass(message: Buffer): void {
    const bytes = LENGTH_BYTES + message.length;
    this.at += bytes;
    this.here = { file: this.here.file, position: this.here.position + bytes };
    this.leaveIfAtEnd();
  }

  /**
   * Reads so much that {@link peek} has the next message, or moves on to the next file. One at a time, and nobody passes a message meanwhile.
   * @param end how far records may be read: the end of what was written, or of what can be trusted
   * @throws {CorruptFileError} when the file cannot be read on
   */
  async readAhead(end: FilePosition): Promise<void> {
    const { here, jumps } = this;
    try {
      const file = await this.open(here.file);
      const fileEnd = here.file === end.file ? end.position : (this.ends.get(here.file) ?? (await file.size()));
      if (jumps !== this.jumps) return;
      if (here.file !== end.file) this.ends.set(here.file, fileEnd);
      if (here.position >= fileEnd) this.leaveIfAtEnd();
      else await this.fill(file, fileEnd - here.position);
    } catch (error) {
      if (jumps !== this.jumps) return;
      throw this.judged(error);
    }
  }

  /** The file is complete and ends there; another one is written to now. */
  complete({ file, position }: FilePosition, next: number): void {
    this.ends.set(file, position);
    this.later.push(next);
    if (file === this.here.file) this.leaveIfAtEnd();
  }

  /** Leaves the file of the cursor, which cannot be read on. There is a next one. */
  skipFile(): void {
    this.leave({ file: this.here.file, badAt: this.here.position });
  }

  /** Leaves everything that there is, up to the file that is written to. */
  skipAll(): void {
    while (this.later.length > 0) this.leave({ file: this.here.file });
  }

  /** Waits for every file that was left as well. */
  async close(): Promise<void> {
    this.letGo();
    await this.closed;
  }

  /** A close that fails leaves nothing to be done. */
  private letGo(): void {
    const { handle } = this;
    this.handle = undefined;
    this.closed = Promise.all([this.closed, handle?.opened.close().catch(() => undefined)]);
  }

  private async fill(file: File, available: number): Promise<void> {
    const { here, jumps } = this;
    const had = this.chunk.subarray(this.at);
    const needed = this.bytesNeeded(had, available);
    const chunk = Buffer.allocUnsafe(Math.min(available, Math.max(CHUNK_BYTES, needed)));
    had.copy(chunk);
    const read = had.length >= chunk.length ? 0 : await readFully(file, chunk.subarray(had.length), here.position + had.length);
    if (jumps !== this.jumps) return;
    const length = Math.min(chunk.length, had.length + read);
    if (length < needed) throw this.corrupt('the file is shorter than it was');
    this.at = 0;
    this.chunk = chunk.subarray(0, length);
    this.readErrors = 0;
  }

  /** How many bytes the next record takes, as far as that can be told. */
  private bytesNeeded(had: Buffer, available: number): number {
    if (available < LENGTH_BYTES) throw this.corrupt(`there are ${available} bytes, and a record has more`);
    if (had.length < LENGTH_BYTES) return LENGTH_BYTES;
    const length = had.readInt32BE(0);
    if (!isMessageLength(length, this.limits)) throw this.corrupt(`a message of ${length} bytes cannot be`);
    if (LENGTH_BYTES + length > available) throw this.corrupt(`the message of ${length} bytes does not end within the file`);
    return LENGTH_BYTES + length;
  }

  /** A disk that cannot read is no corrupt file, unless it goes on like this; a file that is not there is one that cannot be read. */
  private judged(error: unknown): unknown {
    if (!(error instanceof FileError)) return error;
    if (error.isMissing) return this.corrupt('it is not there', error);
    if (error.operation !== 'read' || error.errno !== 'EIO') return error;
    this.readErrors += 1;
    return this.readErrors < MAX_READ_ERRORS ? error : this.corrupt(`the disk failed to read it ${MAX_READ_ERRORS} times`, error);
  }

  private corrupt(reason: string, cause?: unknown): CorruptFileError {
    return new CorruptFileError(this.files.path(this.here.file), this.here.position, reason, cause);
  }

  private leaveIfAtEnd(): void {
    const end = this.ends.get(this.here.file);
    if (end !== undefined && this.here.position >= end) this.leave({ file: this.here.file });
  }

  private leave(file: LeftFile): void {
    this.left.add(file);
    this.ends.delete(file.file);
    this.here = { file: this.later.shift() ?? this.here.file, position: 0 };
    this.jumps += 1;
    this.chunk = NOTHING;
    this.at = 0;
    this.readErrors = 0;
    this.letGo();
    this.leaveIfAtEnd();
  }

  private async open(file: number): Promise<File> {
    if (this.handle?.file === file) return this.handle.opened;
    this.letGo();
    const { jumps } = this;
    const opened = await this.files.open(file, OpenMode.READING);
    if (jumps === this.jumps) this.handle = { file, opened };
    else await opened.close();
    return opened;
  }
}
