import { readFully, type File } from '../storage/file-system/index.js';

/** A record: the length of its message as a big-endian int32, then the message. Nothing else, and nothing between two records. */
export const LENGTH_BYTES = 4;

const WALK_CHUNK_BYTES = 256 * 1024;

/** What a message may have, in bytes. A length outside is no length: the file is corrupt there. */
export interface MessageLimits {
  readonly minMessageBytes: number;
  readonly maxMessageBytes: number;
}

export function isMessageLength(length: number, { minMessageBytes, maxMessageBytes }: MessageLimits): boolean {
  return length >= minMessageBytes && length <= maxMessageBytes;
}

/** @param bytes what all the records take together */
export function encodeRecords(messages: readonly Uint8Array[], bytes: number): Buffer {
  const records = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (const message of messages) {
    records.writeInt32BE(message.length, at);
    records.set(message, at + LENGTH_BYTES);
    at += LENGTH_BYTES + message.length;
  }
  return records;
}

/**
 * Goes from record to record.
 * @param from a boundary of records
 * @param end how far there is anything to be read
 * @returns how many whole records there are in a row, and where the last of them ends
 */
export async function walkRecords(
  file: File,
  from: number,
  end: number,
  limits: MessageLimits,
): Promise<{ readonly count: number; readonly end: number }> {
  let position = from;
  let count = 0;
  let chunk = Buffer.alloc(0);
  let chunkStart = from;
  while (end - position >= LENGTH_BYTES) {
    if (position - chunkStart + LENGTH_BYTES > chunk.length) {
      chunk = Buffer.allocUnsafe(Math.min(WALK_CHUNK_BYTES, end - position));
      chunkStart = position;
      const read = await readFully(file, chunk, position);
      chunk = chunk.subarray(0, read);
      if (read < LENGTH_BYTES) break;
    }
    const length = chunk.readInt32BE(position - chunkStart);
    const next = position + LENGTH_BYTES + length;
    if (!isMessageLength(length, limits) || next > end) break;
    position = next;
    count += 1;
  }
  return { count, end: position };
}
