import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32c } from '@node-rs/crc32';
import { messageOf } from './messages.js';

const SEGMENT_MAX_BYTES = 64 * 1024 * 1024;
const ENTRY_HEADER_BYTES = 8;
const CRC_BYTES = 4;
const POSITION_BYTES = 8;
const CHECKPOINTS = 'checkpoints';

/**
 * Writes a topic as a broker leaves it, without one: ten million messages take seconds. All messages are the same bytes. Everything is
 * synced, so that no disk is busy with it later.
 * @param messageBytes the size of what the producer sent; the broker's time stamp comes on top
 */
export async function storeMessages(dataDir: string, topic: string, count: number, messageBytes: number): Promise<void> {
  const topicDir = join(dataDir, topic);
  await mkdir(join(topicDir, CHECKPOINTS), { recursive: true });
  const entry = entryOf(Buffer.from(`${messageOf(topic, messageBytes).slice(0, -1)},"timestamp":1767225600000}`));
  const countPerSegment = Math.ceil(SEGMENT_MAX_BYTES / entry.length);
  const segmentCount = Math.min(countPerSegment, count);
  const entries = Buffer.alloc(segmentCount * entry.length, entry);
  const positions = positionsOf(segmentCount, entry.length);
  for (let first = 0; first < count; first += countPerSegment) {
    const inThis = Math.min(countPerSegment, count - first);
    const name = join(topicDir, String(first).padStart(19, '0'));
    await writeSynced(`${name}.mmm`, entries.subarray(0, inThis * entry.length));
    await writeSynced(`${name}.idx`, positions.subarray(0, inThis * POSITION_BYTES));
  }
}

/** The next offset that the dispatcher is to read, as its checkpoint says. */
export async function committedOffset(dataDir: string, topic: string, dispatcher: string): Promise<number> {
  const checkpoint = await readFile(join(dataDir, topic, CHECKPOINTS, `${dispatcher}.checkpoint`));
  return Number(checkpoint.readBigInt64BE());
}

/** Length, checksum, payload. */
function entryOf(payload: Buffer): Buffer {
  const header = Buffer.alloc(ENTRY_HEADER_BYTES);
  header.writeInt32BE(CRC_BYTES + payload.length, 0);
  header.writeUInt32BE(crc32c(payload), CRC_BYTES);
  return Buffer.concat([header, payload]);
}

/** Where entries of one size begin, as int64 each. A segment is far smaller than 4 GiB, so the upper halves are zero. */
function positionsOf(count: number, entryBytes: number): Buffer {
  const positions = Buffer.alloc(count * POSITION_BYTES);
  for (let index = 0; index < count; index += 1) positions.writeUInt32BE(index * entryBytes, index * POSITION_BYTES + 4);
  return positions;
}

async function writeSynced(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(bytes);
    await file.datasync();
  } finally {
    await file.close();
  }
}
