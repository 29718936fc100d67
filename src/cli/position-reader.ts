import { INDEX_RECORD_BYTES, type SegmentStores } from '../storage/index.js';

/** So many records are held at a time: 64 KiB of the file. */
const RECORDS_PER_READ = 8192;

/** The positions in an offset index, record by record, with one chunk of memory. */
export class PositionReader {
  private chunk: readonly number[] = [];
  private chunkStart = 0;

  private constructor(
    private readonly stores: SegmentStores,
    private readonly path: string,
    /** How many whole records the file has. */
    readonly count: number,
    /** Records that a start puts right before it reads them. */
    private readonly filled: ReadonlyMap<number, number>,
  ) {}

  static async of(stores: SegmentStores, path: string, filled: ReadonlyMap<number, number> = new Map()): Promise<PositionReader> {
    const size = await stores.offsetIndexes.size(path);
    return new PositionReader(stores, path, Math.floor(size / INDEX_RECORD_BYTES), filled);
  }

  /** Of a file that is not there. */
  static empty(stores: SegmentStores, path: string): PositionReader {
    return new PositionReader(stores, path, 0, new Map());
  }

  /** @returns undefined behind the last record, NaN for a record that is no position */
  async at(record: number): Promise<number | undefined> {
    if (record < 0 || record >= this.count) return undefined;
    const filled = this.filled.get(record);
    if (filled !== undefined) return filled;
    if (record < this.chunkStart || record >= this.chunkStart + this.chunk.length) {
      this.chunk = await this.stores.offsetIndexes.read(this.path, record, RECORDS_PER_READ);
      this.chunkStart = record;
    }
    return this.chunk[record - this.chunkStart];
  }

  /** How many records there are in front of the zeros at the end; the first record, which is zeros, counts. */
  async countWithoutZeroTail(): Promise<number> {
    let end = this.count;
    while (end > 1) {
      const start = Math.max(1, end - RECORDS_PER_READ);
      const positions = await this.stores.offsetIndexes.read(this.path, start, end - start);
      const last = positions.findLastIndex((position) => position !== 0);
      if (last >= 0) return start + last + 1;
      end = start;
    }
    return end;
  }
}
