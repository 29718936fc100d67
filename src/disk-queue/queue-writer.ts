import { OpenMode, writeFully, type File } from '../storage/file-system/index.js';
import type { DataFiles } from './data-files.js';
import type { FilePosition } from './file-position.js';
import type { TailFile } from './tail.file.js';

/** Bytes that were written and not synced; they are kept in memory until they are. */
interface Unsynced {
  readonly position: number;
  readonly bytes: Buffer;
}

/**
 * The end of the queue: one data file that grows.
 *
 * Invariants: everything before `position` are whole records that count; what a failed write left behind it is cut away before anything else
 * is written. Of what is not synced there is a copy in memory: after a sync that failed, the kernel may have dropped the bytes and show
 * them all the same, so they are written once more, through a fresh handle, before the next sync.
 */
export class QueueWriter {
  private handle: File | undefined;
  private unsynced: Unsynced[] = [];
  private unsyncedSum = 0;
  private syncedPosition: number;
  /** A sync has failed since the unsynced bytes were written. */
  private doubtful = false;
  /** There may be bytes behind the position. */
  private ragged = false;
  /** They were cut away, and may be there again after a power cut. */
  private trimmed = false;
  private closed: Promise<unknown> = Promise.resolve();

  /** @param made whether the file is there */
  constructor(
    private readonly files: DataFiles,
    private readonly tail: TailFile,
    private at: FilePosition,
    private made: boolean,
  ) {
    this.syncedPosition = at.position;
  }

  get file(): number {
    return this.at.file;
  }

  get position(): number {
    return this.at.position;
  }

  get isMade(): boolean {
    return this.made;
  }

  get unsyncedBytes(): number {
    return this.unsyncedSum;
  }

  /** How far a reader may trust what the disk shows. */
  get trustedPosition(): number {
    return this.doubtful ? this.syncedPosition : this.at.position;
  }

  /** Makes the file. The metadata names it already, and the next metadata makes the name durable with its own. */
  async make(): Promise<void> {
    await this.open();
    this.made = true;
  }

  /**
   * Writes records behind the last ones. When this throws, they are not there.
   * @param isSyncedNext whether nobody relies on them before they are synced: then they need no proof
   */
  async append(records: Buffer, isSyncedNext: boolean): Promise<void> {
    await this.trim();
    const file = await this.open();
    const { at } = this;
    this.ragged = true;
    // Both have come to their end before anything else is written, whatever becomes of them.
    const [data, proof] = await Promise.allSettled([
      writeFully(file, records, at.position),
      isSyncedNext ? undefined : this.tail.prove(at, records),
    ]);
    for (const write of [data, proof]) if (write.status === 'rejected') throw write.reason;
    this.ragged = false;
    if (proof.status === 'fulfilled' && proof.value !== undefined) this.tail.accept(proof.value);
    this.unsynced.push({ position: at.position, bytes: records });
    this.unsyncedSum += records.length;
    this.at = { file: at.file, position: at.position + records.length };
  }

  /** Makes everything before the position durable. */
  async sync(): Promise<void> {
    await this.trim();
    if (this.unsynced.length === 0 && !this.doubtful && !this.trimmed) return;
    const file = await this.open();
    try {
      if (this.doubtful) for (const { position, bytes } of this.unsynced) await writeFully(file, bytes, position);
      await file.sync();
    } catch (error) {
      this.doubtful = true;
      // What the kernel remembers of the failure goes with the handle.
      this.letGo();
      throw error;
    }
    this.forgetUnsynced();
  }

  /** Takes back what was appended since the end was there: it was promised to nobody. */
  async takeBackTo(position: number): Promise<void> {
    this.at = { file: this.at.file, position };
    this.unsynced = this.unsynced.filter((kept) => kept.position < position);
    this.unsyncedSum = this.unsynced.reduce((sum, { bytes }) => sum + bytes.length, 0);
    this.syncedPosition = Math.min(this.syncedPosition, position);
    this.ragged = true;
    await this.trim().catch(() => undefined);
  }

  /** Goes on in a file that is yet to be made. Whether what was written so far is synced or not needed any more is for the caller to know. */
  moveTo(file: number): void {
    this.letGo();
    this.at = { file, position: 0 };
    this.made = false;
    this.ragged = false;
    this.forgetUnsynced();
  }

  /** Waits for every file that was written to as well. */
  async close(): Promise<void> {
    this.letGo();
    await this.closed;
  }

  /** Cuts away what a failed write left, or what was taken back. */
  private async trim(): Promise<void> {
    if (!this.ragged) return;
    const file = await this.open();
    await file.truncate(this.at.position);
    this.ragged = false;
    this.trimmed = true;
  }

  private async open(): Promise<File> {
    return (this.handle ??= await this.files.open(this.at.file, this.made ? OpenMode.EXISTING : OpenMode.EXISTING_OR_NEW));
  }

  /** A close that fails leaves nothing to be done: what had to be on the disk was synced before. */
  private letGo(): void {
    const { handle } = this;
    this.handle = undefined;
    this.closed = Promise.all([this.closed, handle?.close().catch(() => undefined)]);
  }

  private forgetUnsynced(): void {
    this.unsynced = [];
    this.unsyncedSum = 0;
    this.syncedPosition = this.at.position;
    this.doubtful = false;
    this.trimmed = false;
  }
}
