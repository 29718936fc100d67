import { join } from 'node:path';
import { ENTRY_HEADER_BYTES, type LogEntry, type ReadLimits } from '../../core/index.js';
import { encodeEntries, entryBytesAt, payloadAt } from './entry.codec.js';
import { LogUntrustedError } from './log-untrusted.error.js';
import { INDEX_RECORD_BYTES, type OffsetIndexStore } from './offset-index.store.js';
import { offsetIndexFileName, segmentFileName } from './segment-name.js';
import type { SegmentStore } from './segment.store.js';

export interface SegmentStores {
  readonly segments: SegmentStore;
  readonly offsetIndexes: OffsetIndexStore;
}

/** How much of a segment is durable: that many messages in that many bytes. */
export interface SegmentExtent {
  readonly count: number;
  readonly endPosition: number;
}

/**
 * One stretch of a topic's messages: a segment file and its offset index, both named by the first offset.
 *
 * Invariants: the first `count` records of the index and the first `endPosition` bytes of the segment file are durable; readers look at
 * nothing beyond; both only grow, and only after both syncs of an append.
 *
 * A crash leaves, beyond the durable part: bytes in the segment file without a record in the index, and, once the segment file was synced,
 * some of the records. Recovery cuts what has no record; whole records that were not acknowledged yet stay.
 */
export class Segment {
  readonly segmentPath: string;
  readonly offsetIndexPath: string;
  private durable: SegmentExtent;

  constructor(
    private readonly stores: SegmentStores,
    topicDir: string,
    readonly baseOffset: number,
    extent: SegmentExtent,
  ) {
    this.segmentPath = join(topicDir, segmentFileName(baseOffset));
    this.offsetIndexPath = join(topicDir, offsetIndexFileName(baseOffset));
    this.durable = extent;
  }

  get count(): number {
    return this.durable.count;
  }

  get endPosition(): number {
    return this.durable.endPosition;
  }

  get nextOffset(): number {
    return this.baseOffset + this.durable.count;
  }

  /**
   * Appends in the order that makes an acknowledgement true: entries, sync, positions, sync, and only then are they visible.
   * @throws {LogUntrustedError} when the segment must not be appended to before it was re-opened
   * @throws {FileError} when nothing of the append is left and the next one may go on
   */
  append(payloads: readonly Buffer[]): Promise<void> {
    return this.keepOpen(() => this.appendDurably(payloads));
  }

  private async appendDurably(payloads: readonly Buffer[]): Promise<void> {
    const { segments, offsetIndexes } = this.stores;
    const { bytes, positions } = encodeEntries(payloads, this.endPosition);
    await this.orCutBack(() => segments.write(this.segmentPath, bytes, this.endPosition));
    await orUntrusted(() => segments.sync(this.segmentPath));
    await this.orCutBack(() => offsetIndexes.write(this.offsetIndexPath, positions, this.count));
    await orUntrusted(() => offsetIndexes.sync(this.offsetIndexPath));
    this.durable = { count: this.count + payloads.length, endPosition: this.endPosition + bytes.length };
  }

  /**
   * Cuts both files back to what is durable. The index goes first and is synced first: at no moment may it name a position that the segment
   * file no longer has, and a record that survives a crash would show a message whose producer was told NACK.
   */
  cutBack(): Promise<void> {
    const { segments, offsetIndexes } = this.stores;
    return this.keepOpen(async () => {
      await offsetIndexes.truncate(this.offsetIndexPath, this.count * INDEX_RECORD_BYTES);
      await offsetIndexes.sync(this.offsetIndexPath);
      await segments.truncate(this.segmentPath, this.endPosition);
      await segments.sync(this.segmentPath);
    });
  }

  /** Uses the files through fresh handles from here on. */
  reopen(): void {
    this.stores.segments.reopen(this.segmentPath);
    this.stores.offsetIndexes.reopen(this.offsetIndexPath);
  }

  /** The byte position at which the message stands, or the end of the segment for the offset behind its last one. */
  async positionOf(relativeOffset: number): Promise<number> {
    if (relativeOffset >= this.count) return this.endPosition;
    const [position] = await this.stores.offsetIndexes.read(this.offsetIndexPath, relativeOffset, 1);
    return position ?? Number.NaN;
  }

  /** Reads consecutive messages from `offset`, which must be one of this segment's, as {@link TopicLog.read} says. */
  async read(offset: number, limits: ReadLimits): Promise<readonly LogEntry[]> {
    const { count, endPosition } = this.durable;
    const first = offset - this.baseOffset;
    const wanted = Math.min(limits.maxCount, count - first);
    // One more than wanted: the next position is what an entry's end is held against.
    const positions = await this.stores.offsetIndexes.read(this.offsetIndexPath, first, Math.min(wanted + 1, count - first));
    const ends = (index: number): number => (first + index + 1 === count ? endPosition : (positions[index + 1] ?? Number.NaN));
    const start = positions[0] ?? Number.NaN;
    if (!(start + ENTRY_HEADER_BYTES <= endPosition)) return [corrupt(offset, 'its position in the offset index is beyond the segment')];

    let chunk = await this.readChunk(start, chunkLength(start, ends(wanted - 1), endPosition, limits.maxBytes));
    const entries: LogEntry[] = [];
    for (let index = 0; index < wanted; index += 1) {
      const position = positions[index] ?? Number.NaN;
      const at = position - start;
      let bytes = at >= 0 && at + ENTRY_HEADER_BYTES <= chunk.length ? entryBytesAt(chunk, at) : 0;
      if (index === 0 && bytes !== undefined && bytes > chunk.length && start + bytes <= endPosition) {
        chunk = await this.readChunk(start, bytes);
      }
      if (bytes === undefined || at + bytes > chunk.length) bytes = 0;
      // What cannot be judged from this chunk is left to the next read, which begins with it; the first entry must be judged now.
      if (bytes === 0 && index > 0) break;
      entries.push(await this.judge(offset + index, { chunk, at, bytes, position, end: ends(index) }));
    }
    return entries;
  }

  /** Tells an entry that can be trusted from one that cannot. */
  private async judge(
    offset: number,
    found: { chunk: Buffer; at: number; bytes: number; position: number; end: number },
  ): Promise<LogEntry> {
    if (found.bytes === 0) return corrupt(offset, 'its length cannot be right');
    const payload = payloadAt(found.chunk, found.at, found.bytes);
    if (payload === undefined) return corrupt(offset, 'its checksum does not fit');
    // A damaged record may point at another message, and damaged bytes may be another message, that is sound in itself. It is this one when it
    // ends where the next one begins; or, where the next record is the damaged one, when it fills the place between its neighbours.
    const end = found.position + found.bytes;
    const proven = end === found.end || ((await this.endOfPrevious(offset)) === found.position && (await this.isNextAt(offset, end)));
    return proven ? { offset, payload } : corrupt(offset, 'it does not fit between the messages before and behind it');
  }

  private async endOfPrevious(offset: number): Promise<number> {
    const relativeOffset = offset - this.baseOffset;
    return relativeOffset === 0 ? 0 : this.endOfEntry(await this.positionOf(relativeOffset - 1));
  }

  /** Whether the message behind `offset` stands at `position`, whatever its own record says: it ends where the one behind it begins. */
  private async isNextAt(offset: number, position: number): Promise<boolean> {
    return (await this.endOfEntry(position)) === (await this.positionOf(offset - this.baseOffset + 2));
  }

  private async endOfEntry(position: number): Promise<number> {
    if (!(position + ENTRY_HEADER_BYTES <= this.endPosition)) return Number.NaN;
    const header = await this.readChunk(position, ENTRY_HEADER_BYTES);
    const bytes = header.length === ENTRY_HEADER_BYTES ? entryBytesAt(header, 0) : undefined;
    return bytes === undefined ? Number.NaN : position + bytes;
  }

  /** Both files are open before anything is written: a handle that cannot be had fails the append while nothing has happened yet. */
  private keepOpen(work: () => Promise<void>): Promise<void> {
    const { segments, offsetIndexes } = this.stores;
    return segments.keepOpen(this.segmentPath, () => offsetIndexes.keepOpen(this.offsetIndexPath, work));
  }

  private readChunk(position: number, length: number): Promise<Buffer> {
    return this.stores.segments.read(this.segmentPath, position, length);
  }

  /** A write that failed may have left a part: it goes before anything else is written, and the append as a whole has not happened. */
  private async orCutBack(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      await orUntrusted(() => this.cutBack());
      throw error;
    }
  }
}

/** How many bytes to read at once: to the end of the last message wanted where the index is sane, within the limit, never past the end. */
function chunkLength(start: number, end: number, endPosition: number, maxBytes: number): number {
  const wanted = end > start && end <= endPosition ? end - start : endPosition - start;
  return Math.max(ENTRY_HEADER_BYTES, Math.min(wanted, maxBytes + ENTRY_HEADER_BYTES));
}

async function orUntrusted(step: () => Promise<void>): Promise<void> {
  try {
    await step();
  } catch (error) {
    throw new LogUntrustedError(error);
  }
}

function corrupt(offset: number, corruption: string): LogEntry {
  return { offset, corruption };
}
