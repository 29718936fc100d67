import { ENTRY_HEADER_BYTES, PASS_MAX_BYTES } from '../../core/index.js';
import {
  checksumAt,
  continuedChecksum,
  entryBytesAt,
  INDEX_RECORD_BYTES,
  type SegmentExtent,
  type SegmentStores,
} from '../segment/index.js';
import { CorruptLogError } from './corrupt-log.error.js';
import type { Repair } from './topic-findings.js';

/** The two files of a segment, by path. */
export interface SegmentPaths {
  readonly segment: string;
  readonly offsetIndex: string;
}

export interface SegmentFindings {
  readonly extent: SegmentExtent;
  /** The first record of the last pass: what a process that ended in it may have left in the kernel's memory alone. Equal to the count where there is none. */
  readonly lastPass: number;
  readonly repairs: readonly Repair[];
}

/** An entry takes at least a header and a byte, so one append writes no more positions than this. */
const MAX_RECORDS_PER_PASS = Math.ceil(PASS_MAX_BYTES / (ENTRY_HEADER_BYTES + 1));

/** So many records of an index are read at a time: 64 KiB. */
const RECORDS_PER_READ = 8192;

/** An entry is read in parts of this size: many topics are looked at at the same time. */
const LARGE_READ_BYTES = 1024 * 1024;

/** What a disk writes as a whole, in records: a stretch of them that did not come to the disk ends where a sector does. */
const RECORDS_PER_SECTOR = 512 / INDEX_RECORD_BYTES;

/**
 * Decides what a segment's files mean. It reads sizes, the end of the offset index and, of the last segment, the entries of its last pass:
 * the cost does not grow with the number of messages.
 *
 * An append writes entries, syncs, writes positions, syncs. A crash therefore leaves, in the last segment and beyond its good part only:
 *
 *   1. entries, or zeros where the size came to the disk before the data, that have no position yet: at most one pass;
 *   2. a half record at the end of the index, or zeros where positions should be, also in front of records that are good: the sectors of a
 *      file come to the disk in any order, and the last of what came may end within a record;
 *   3. in a segment's first append, a size without data in both files: position 0, which is eight zeros, over nothing but zeros.
 *
 * Everything else is corruption, and in an older segment all of it.
 */
export class SegmentInspection {
  /** Positions that are missing in the index and that the segment proves, by record. */
  private readonly proven = new Map<number, number>();
  private readonly headers = new HeaderReader((position, length) => this.bytes(position, length));
  private readonly records = new RecordReader((first, count) => this.stores.offsetIndexes.read(this.paths.offsetIndex, first, count));

  constructor(
    private readonly stores: SegmentStores,
    private readonly paths: SegmentPaths,
  ) {}

  /** A segment that is followed by another: it was complete before that one began. */
  async inspectOlder(): Promise<SegmentFindings> {
    const { segmentSize, indexSize } = await this.sizes();
    if (indexSize === 0) throw this.indexCorrupt(0, 'the offset index is empty although another segment follows');
    if (indexSize % INDEX_RECORD_BYTES !== 0)
      throw this.indexCorrupt(indexSize, 'the offset index ends in half a record although another segment follows');
    const count = indexSize / INDEX_RECORD_BYTES;
    await this.requireFirstPositionZero();
    const last = await this.lastEntry(count, segmentSize);
    if (last.end !== segmentSize) {
      throw this.segmentCorrupt(
        last.end,
        `the last indexed message ends here, but the file has ${segmentSize} bytes although another segment follows`,
      );
    }
    return { extent: { count, endPosition: segmentSize }, lastPass: count, repairs: [] };
  }

  /** The segment that appends go to. */
  async inspectLast(): Promise<SegmentFindings> {
    const { segmentSize, indexSize } = await this.sizes();
    const count = await this.countWithoutHoles(await this.countWithoutZeroTail(Math.floor(indexSize / INDEX_RECORD_BYTES)), segmentSize);
    if (count === 0) return this.withCuts({ count: 0, endPosition: 0 }, 0, indexSize, segmentSize);

    await this.requireFirstPositionZero();
    if (count === 1 && segmentSize > 0 && (await this.isAllZeros(segmentSize))) {
      return this.withCuts({ count: 0, endPosition: 0 }, 0, indexSize, segmentSize);
    }
    const last = await this.lastEntry(count, segmentSize);
    const lastPass = await this.firstOfLastPass(count, last.end);
    await this.checkLastPass(lastPass, count, last.end);
    if (last.end < segmentSize && !(await this.isIntact(last.position, last.end))) {
      throw this.segmentCorrupt(
        last.position,
        'the last indexed message fails its checksum and more bytes follow, so where it ends is unknown',
      );
    }
    return this.withCuts({ count, endPosition: last.end }, lastPass, indexSize, segmentSize);
  }

  /** The index is cut before the segment: it must never name a position that the segment no longer has. */
  private withCuts(extent: SegmentExtent, lastPass: number, indexSize: number, segmentSize: number): SegmentFindings {
    const surplus = segmentSize - extent.endPosition;
    if (surplus > PASS_MAX_BYTES) {
      throw this.segmentCorrupt(
        extent.endPosition,
        `${surplus} bytes follow the last indexed message, more than the ${PASS_MAX_BYTES} that one append can leave: the offset index has lost records`,
      );
    }
    const repairs: Repair[] = [];
    // Before any cut: what a filled position names must never be gone already.
    for (const { first, positions } of this.provenRuns()) {
      repairs.push({
        kind: 'fill',
        path: this.paths.offsetIndex,
        first,
        positions,
        reason: `${positions.length} positions from byte ${first * INDEX_RECORD_BYTES} on did not come to the disk, and the segment file has them`,
      });
    }
    const indexEnd = extent.count * INDEX_RECORD_BYTES;
    if (indexSize > indexEnd) {
      repairs.push({
        kind: 'cut',
        path: this.paths.offsetIndex,
        size: indexEnd,
        reason: `${indexSize - indexEnd} bytes at the end are no positions`,
      });
    }
    if (surplus > 0) {
      repairs.push({
        kind: 'cut',
        path: this.paths.segment,
        size: extent.endPosition,
        reason: `${surplus} bytes at the end are in no offset index: an append that was never acknowledged`,
      });
    }
    return { extent, lastPass, repairs };
  }

  /** Position 0 is the one record that may be zeros; it is decided by what stands in the segment. */
  private async countWithoutZeroTail(records: number): Promise<number> {
    let count = records;
    while (count > 1) {
      if (records - count > MAX_RECORDS_PER_PASS) {
        throw this.indexCorrupt(count * INDEX_RECORD_BYTES, 'more zeros follow where positions should be than one append can leave');
      }
      const first = Math.max(1, count - RECORDS_PER_READ);
      const positions = await this.positions(first, count - first);
      const lastPosition = positions.findLastIndex((position) => position !== 0);
      if (lastPosition >= 0) return first + lastPosition + 1;
      count = first;
    }
    return count;
  }

  /**
   * Finds the positions that did not come to the disk although later ones did. The segment was synced before the index was written, so it has
   * their entries: where walking it, entry by entry, arrives at every later record, the missing ones are known. Where it does not, nothing is
   * decided here, and the checks that follow refuse.
   * @returns how many records count: without those at the end that came to the disk in part
   */
  private async countWithoutHoles(count: number, segmentSize: number): Promise<number> {
    const doubtful = await this.firstDoubtfulRecord(count, segmentSize);
    if (doubtful === undefined) return count;
    // What came to the disk may have ended within the record in front of the zeros.
    const first = Math.max(1, doubtful - 1);
    const [before] = await this.positions(first - 1, 1);
    const proven: [record: number, position: number][] = [];
    let position = before ?? Number.NaN;
    let holeBegin: number | undefined;
    for (let start = first; start < count; start += RECORDS_PER_READ) {
      const found = await this.positions(start, Math.min(RECORDS_PER_READ, count - start));
      for (const [index, record] of found.entries()) {
        const next = await this.endOfIntact(position);
        if (next === undefined || !isPartOf(record, next)) return count;
        position = next;
        if (record !== next) {
          holeBegin ??= start + index;
          proven.push([start + index, next]);
        } else if (holeBegin !== undefined) {
          if ((start + index) % RECORDS_PER_SECTOR !== 0) return count;
          holeBegin = undefined;
        }
      }
    }
    const end = holeBegin ?? count;
    for (const [record, provenPosition] of proven) if (record < end) this.proven.set(record, provenPosition);
    return end;
  }

  private provenRuns(): { first: number; positions: number[] }[] {
    const runs: { first: number; positions: number[] }[] = [];
    for (const [record, position] of this.proven) {
      const run = runs.at(-1);
      if (run !== undefined && run.first + run.positions.length === record) run.positions.push(position);
      else runs.push({ first: record, positions: [position] });
    }
    return runs;
  }

  /** The first record of the last pass that is zeros, or the last one when its last byte is. Position 0 of a segment is no doubtful one. */
  private async firstDoubtfulRecord(count: number, segmentSize: number): Promise<number | undefined> {
    let first: number | undefined;
    for (let end = count; end > 1 && count - end <= 2 * MAX_RECORDS_PER_PASS; end -= RECORDS_PER_READ) {
      const start = Math.max(1, end - RECORDS_PER_READ);
      const positions = await this.positions(start, end - start);
      for (const [index, position] of [...positions.entries()].toReversed()) {
        if (position === 0 || (start + index === count - 1 && position % 256 === 0)) first = start + index;
        // The last pass, and one more whose bytes may follow it.
        else if (segmentSize - position > 2 * PASS_MAX_BYTES) return first;
      }
    }
    return first;
  }

  /** @returns where the entry at `position` ends, or undefined when there is no whole one */
  private async endOfIntact(position: number): Promise<number | undefined> {
    const header = Number.isNaN(position) ? undefined : await this.headers.at(position);
    const bytes = header === undefined ? undefined : entryBytesAt(header, 0);
    return bytes !== undefined && (await this.isIntact(position, position + bytes)) ? position + bytes : undefined;
  }

  private async requireFirstPositionZero(): Promise<void> {
    const [first] = await this.positions(0, 1);
    if (first !== 0) throw this.indexCorrupt(0, 'the first position is not 0');
  }

  private async isAllZeros(segmentSize: number): Promise<boolean> {
    if (segmentSize > PASS_MAX_BYTES) return false;
    const header = await this.headers.at(0);
    if (header?.some((byte) => byte !== 0)) return false;
    for (let position = 0; position < segmentSize; position += LARGE_READ_BYTES) {
      const bytes = await this.bytes(position, Math.min(LARGE_READ_BYTES, segmentSize - position));
      if (bytes.some((byte) => byte !== 0)) return false;
    }
    return true;
  }

  /** Where the last indexed entry begins and ends. It must lie in the segment; its checksum may be wrong: it was acknowledged, and reading skips it. */
  private async lastEntry(count: number, segmentSize: number): Promise<{ position: number; end: number }> {
    const record = (count - 1) * INDEX_RECORD_BYTES;
    const [position = Number.NaN] = await this.positions(count - 1, 1);
    if (!(position < segmentSize)) {
      throw this.indexCorrupt(record, `the last position is ${positionText(position)}, but the segment file has only ${segmentSize} bytes`);
    }
    if (position + ENTRY_HEADER_BYTES > segmentSize) {
      throw this.segmentCorrupt(
        position,
        `the file ends at ${segmentSize}, within the last indexed message: acknowledged bytes are missing`,
      );
    }
    const header = await this.headers.at(position);
    if (header === undefined) throw this.segmentCorrupt(position, 'the file ends within the header of the last indexed message');
    if (header.readInt32BE(0) === 0) throw this.segmentCorrupt(position, 'zeros stand where the offset index has a message');
    const bytes = entryBytesAt(header, 0);
    if (bytes === undefined) throw this.segmentCorrupt(position, 'the length of the last indexed message cannot be right');
    if (position + bytes > segmentSize) {
      throw this.segmentCorrupt(
        position,
        `the last indexed message ends at ${position + bytes}, but the file has only ${segmentSize} bytes: acknowledged bytes are missing`,
      );
    }
    return { position, end: position + bytes };
  }

  /**
   * Walks the entries of the last pass. Every message must begin where the one before it ends. One damaged length between two sound
   * neighbours is a damaged message, which reading skips; anything else is a bad record with good ones after it.
   */
  private async checkLastPass(first: number, count: number, end: number): Promise<void> {
    let previousJoined = first === 0;
    for (let start = first; start < count - 1; start += RECORDS_PER_READ) {
      // Two more than are judged here: a broken link is judged by the link behind it.
      const positions = await this.positions(start, Math.min(RECORDS_PER_READ + 2, count - start));
      const judged = Math.min(RECORDS_PER_READ, count - 1 - start);
      for (let index = 0; index < judged; index += 1) {
        const joined =
          this.joinsInMemory(positions[index], positions[index + 1]) ?? (await this.joins(positions[index], positions[index + 1]));
        if (!joined) {
          const next = positions[index + 1] ?? Number.NaN;
          const isLast = start + index + 1 === count - 1;
          const nextJoined = isLast ? await this.isIntact(next, end) : await this.joins(next, positions[index + 2]);
          const anchored = previousJoined || (index === 0 && start === first && (await this.beginsWhereThePreviousEnds(first)));
          const increasing = next > (positions[index] ?? Number.NaN);
          // A whole message that ends elsewhere has no damaged length: the index has lost the positions that follow it.
          const isWhole = (await this.endOfIntact(positions[index] ?? Number.NaN)) !== undefined;
          if (!anchored || !nextJoined || !increasing || isWhole) {
            const record = (start + index + 1) * INDEX_RECORD_BYTES;
            throw this.indexCorrupt(
              record,
              `position ${positionText(next)} is not where the message before it ends, and good records follow or it is the last`,
            );
          }
        }
        previousJoined = joined;
      }
    }
  }

  private async beginsWhereThePreviousEnds(relativeOffset: number): Promise<boolean> {
    const [previous, position] = await this.positions(relativeOffset - 1, 2);
    return this.joins(previous, position);
  }

  /** The first record whose entry can belong to the last pass. */
  private async firstOfLastPass(count: number, end: number): Promise<number> {
    let first = count - 1;
    while (first > 0) {
      const start = Math.max(0, first - RECORDS_PER_READ);
      const positions = await this.positions(start, first - start);
      const beyond = positions.findLastIndex((position) => !(end - position <= PASS_MAX_BYTES));
      if (beyond >= 0) return start + beyond + 1;
      first = start;
    }
    return first;
  }

  /** Whether the entry at `position` ends at `next`. */
  private async joins(position: number | undefined, next: number | undefined): Promise<boolean> {
    if (position === undefined || next === undefined || !(position + ENTRY_HEADER_BYTES < next)) return false;
    const header = await this.headers.at(position);
    return header !== undefined && position + (entryBytesAt(header, 0) ?? Number.NaN) === next;
  }

  /** The same where the header was read with others: a promise for each of a million entries takes longer than reading them. */
  private joinsInMemory(position = Number.NaN, next = Number.NaN): boolean | undefined {
    const header = this.headers.held(position);
    return header === undefined ? undefined : position + (entryBytesAt(header, 0) ?? Number.NaN) === next;
  }

  private async isIntact(position: number, end: number): Promise<boolean> {
    if (!(position + ENTRY_HEADER_BYTES < end) || end - position > PASS_MAX_BYTES) return false;
    const header = await this.headers.at(position);
    if (header === undefined || entryBytesAt(header, 0) !== end - position) return false;
    const checksum = checksumAt(header, 0);
    let found = 0;
    for (let at = position + ENTRY_HEADER_BYTES; at < end; at += LARGE_READ_BYTES) {
      found = continuedChecksum(found, await this.bytes(at, Math.min(LARGE_READ_BYTES, end - at)));
    }
    return found === checksum;
  }

  private async sizes(): Promise<{ segmentSize: number; indexSize: number }> {
    const segmentSize = await this.stores.segments.size(this.paths.segment);
    const indexSize = await this.stores.offsetIndexes.size(this.paths.offsetIndex);
    this.headers.fileSize = segmentSize;
    this.records.fileSize = indexSize;
    return { segmentSize, indexSize };
  }

  private async positions(first: number, count: number): Promise<number[]> {
    const positions = await this.records.read(first, count);
    return this.proven.size === 0 ? positions : positions.map((position, index) => this.proven.get(first + index) ?? position);
  }

  private bytes(position: number, length: number): Promise<Buffer> {
    return this.stores.segments.read(this.paths.segment, position, length);
  }

  private segmentCorrupt(position: number, reason: string): CorruptLogError {
    return new CorruptLogError(this.paths.segment, position, reason);
  }

  private indexCorrupt(position: number, reason: string): CorruptLogError {
    return new CorruptLogError(this.paths.offsetIndex, position, reason);
  }
}

/** Whether the record is the position, or what is left of its eight bytes when the last of them are zeros. */
function isPartOf(record: number, position: number): boolean {
  for (let lost = 1; lost <= position; lost *= 256) if (record === position - (position % lost)) return true;
  return record === 0;
}

const HEADER_CHUNK_BYTES = 64 * 1024;

/** Reads entry headers in the order of their positions without one read each: small entries share a chunk. */
class HeaderReader {
  fileSize = 0;
  private chunk: Buffer = Buffer.alloc(0);
  private chunkPosition = 0;

  constructor(private readonly read: (position: number, length: number) => Promise<Buffer>) {}

  /** @returns undefined where the file ends before a whole header */
  async at(position: number): Promise<Buffer | undefined> {
    if (this.held(position) === undefined) {
      // A small file is read once.
      this.chunkPosition = this.fileSize <= HEADER_CHUNK_BYTES ? 0 : position;
      this.chunk = await this.read(this.chunkPosition, Math.max(0, Math.min(HEADER_CHUNK_BYTES, this.fileSize - this.chunkPosition)));
    }
    return this.held(position);
  }

  /** @returns undefined where it has to be read */
  held(position: number): Buffer | undefined {
    const at = position - this.chunkPosition;
    return at >= 0 && at + ENTRY_HEADER_BYTES <= this.chunk.length ? this.chunk.subarray(at, at + ENTRY_HEADER_BYTES) : undefined;
  }
}

/** Reads the records of an index. What it read last it has at hand: a small index is read once, whatever is asked of it. */
class RecordReader {
  fileSize = 0;
  private first = 0;
  private held: readonly number[] = [];

  constructor(private readonly readFile: (first: number, count: number) => Promise<number[]>) {}

  async read(first: number, count: number): Promise<number[]> {
    if (first < this.first || first + count > this.first + this.held.length) {
      const fileCount = Math.trunc(this.fileSize / INDEX_RECORD_BYTES);
      const isSmall = fileCount <= RECORDS_PER_READ && first + count <= fileCount;
      this.first = isSmall ? 0 : first;
      this.held = await this.readFile(this.first, isSmall ? fileCount : count);
    }
    return this.held.slice(first - this.first, first - this.first + count);
  }
}

function positionText(position: number): string {
  return Number.isNaN(position) ? 'no number that a position can be' : String(position);
}
