import { FileStore, readFully, writeFully } from '../file-system/index.js';

/** One big-endian int64 for each message: where its entry begins in the segment file. */
export const INDEX_RECORD_BYTES = 8;

/** The upper half of the largest position that a number holds exactly. */
const MAX_HIGH_HALF = 2 ** 21 - 1;

/**
 * The `.idx` files. The offset index is the single source of truth: a message whose position is not in it does not exist, whatever the
 * segment file holds.
 */
export class OffsetIndexStore extends FileStore {
  /** Writes the positions of messages from the `relativeOffset`-th of the segment on. */
  write(path: string, positions: readonly number[], relativeOffset: number): Promise<void> {
    const records = Buffer.allocUnsafe(positions.length * INDEX_RECORD_BYTES);
    positions.forEach((position, index) => records.writeBigInt64BE(BigInt(position), index * INDEX_RECORD_BYTES));
    return this.files.use(path, (file) => writeFully(file, records, relativeOffset * INDEX_RECORD_BYTES));
  }

  /** @returns the positions of up to `count` messages, fewer at the end of the file; a record that is no position comes as NaN */
  read(path: string, relativeOffset: number, count: number): Promise<number[]> {
    return this.files.use(path, async (file) => {
      const records = Buffer.allocUnsafe(count * INDEX_RECORD_BYTES);
      const length = await readFully(file, records, relativeOffset * INDEX_RECORD_BYTES);
      const positions: number[] = [];
      for (let at = 0; at + INDEX_RECORD_BYTES <= length; at += INDEX_RECORD_BYTES) positions.push(positionAt(records, at));
      return positions;
    });
  }
}

/** By halves: a big integer for each of millions of records would cost more than reading them. */
function positionAt(records: Buffer, at: number): number {
  const high = records.readInt32BE(at);
  return high >= 0 && high <= MAX_HIGH_HALF ? high * 2 ** 32 + records.readUInt32BE(at + 4) : Number.NaN;
}
