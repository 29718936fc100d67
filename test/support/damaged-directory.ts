import { mkdir, open, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PASS_MAX_BYTES } from '../../src/core/index.js';
import { fileEngine } from './file-engine.js';

export const TOPIC = 'order.created';
/** The first segment holds three messages, the last one two; each entry takes 8 + 9 bytes. */
export const OLDER = '0000000000000000000';
export const LAST = '0000000000000000003';
export const ENTRY = 17;
export const MESSAGES = ['{"m":"0"}', '{"m":"1"}', '{"m":"2"}', '{"m":"3"}', '{"m":"4"}'];
export const mmm = (segment: string): string => join(TOPIC, `${segment}.mmm`);
export const idx = (segment: string): string => join(TOPIC, `${segment}.idx`);
export const checkpoint = (dispatcher: string): string => join(TOPIC, 'checkpoints', `${dispatcher}.checkpoint`);

/** Makes a data directory with five messages of one topic in two segments, and the checkpoint of one dispatcher. */
export async function makeDataDirectory(rootDir: string): Promise<void> {
  const { engine } = fileEngine(rootDir, { segmentMaxBytes: 3 * ENTRY });
  await engine.open();
  const topic = await engine.create(TOPIC);
  await topic.append(MESSAGES.map((message) => Buffer.from(message)));
  await topic.committed('order-dispatcher');
  await engine.close();
}

export async function append(path: string, bytes: Buffer): Promise<void> {
  await writeFile(path, Buffer.concat([await readFile(path), bytes]));
}

export async function overwrite(path: string, position: number, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(bytes, 0, bytes.length, position);
  await file.close();
}

export function int64(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 8);
  values.forEach((value, index) => bytes.writeBigInt64BE(BigInt(value), index * 8));
  return bytes;
}

export interface Damage {
  readonly found: string;
  readonly make: (dir: string) => Promise<void>;
  /** What a start refuses it with, and `verify` finds. */
  readonly says: RegExp;
  /** The messages after a repair, a damaged one as undefined; nothing where a repair leaves the topic as it is. */
  readonly repaired?: readonly (string | undefined)[];
  /** What of it a repair cannot bring back. */
  readonly loses?: RegExp;
  /** What nobody can tell whether it was there. */
  readonly mayLose?: RegExp;
}

/** Damage that a start refuses. */
export const DAMAGES: readonly Damage[] = [
  {
    found: 'a segment shorter than its index says',
    make: (dir) => truncate(join(dir, mmm(LAST)), 2 * ENTRY - 1),
    says: /0003\.mmm, byte 17: .*acknowledged bytes are missing/,
    repaired: MESSAGES.slice(0, 4),
    loses: /offset 4 of order\.created/,
  },
  {
    found: 'a segment that ends within the header of the last indexed entry',
    make: (dir) => truncate(join(dir, mmm(LAST)), ENTRY + 4),
    says: /0003\.mmm, byte 17: .*acknowledged bytes are missing/,
    repaired: MESSAGES.slice(0, 4),
    loses: /offset 4 of order\.created/,
  },
  {
    found: 'a position at the end of the segment',
    make: (dir) => append(join(dir, idx(LAST)), int64(2 * ENTRY)),
    says: /0003\.idx, byte 16: the last position is 34, but the segment file has only 34 bytes/,
    repaired: MESSAGES,
    loses: /offset 5 of order\.created/,
  },
  {
    found: 'a position past the end of the segment',
    make: (dir) => append(join(dir, idx(LAST)), int64(5000)),
    says: /0003\.idx, byte 16: the last position is 5000/,
    repaired: MESSAGES,
    mayLose: /offset 5 of order\.created/,
  },
  {
    found: 'positions over an empty segment',
    make: (dir) => truncate(join(dir, mmm(LAST)), 0),
    says: /0003\.idx, byte 8: the last position is 17/,
    repaired: MESSAGES.slice(0, 3),
    loses: /offsets 3 to 4 of order\.created/,
  },
  {
    found: 'a negative position',
    make: (dir) => overwrite(join(dir, idx(LAST)), 8, int64(-17)),
    says: /0003\.idx, byte 8: the last position is no number/,
    repaired: MESSAGES,
  },
  {
    found: 'zeros in the segment under a valid record',
    make: (dir) => overwrite(join(dir, mmm(LAST)), ENTRY, Buffer.alloc(ENTRY)),
    says: /0003\.mmm, byte 17: zeros stand where the offset index has a message/,
    repaired: MESSAGES.slice(0, 4),
    loses: /offset 4 of order\.created/,
  },
  {
    found: 'a segment longer than a pass',
    make: (dir) => truncate(join(dir, mmm(LAST)), 2 * ENTRY + PASS_MAX_BYTES + 1),
    says: /0003\.mmm, byte 34: 16777217 bytes follow/,
    repaired: MESSAGES,
  },
  {
    found: 'an index emptied under a segment longer than a pass',
    make: async (dir) => {
      await truncate(join(dir, idx(LAST)), 0);
      await truncate(join(dir, mmm(LAST)), PASS_MAX_BYTES + 1);
    },
    says: /0003\.mmm, byte 0: 16777217 bytes follow/,
    repaired: MESSAGES,
  },
  {
    found: 'a bad record with good ones after it',
    make: async (dir) => {
      await removeLast(dir);
      await overwrite(join(dir, idx(OLDER)), 8, int64(20));
    },
    says: /0000\.idx, byte 8: position 20 is not where the message before it ends/,
    repaired: MESSAGES.slice(0, 3),
  },
  {
    found: 'zeros as a position with good ones after it',
    make: async (dir) => {
      await removeLast(dir);
      await overwrite(join(dir, idx(OLDER)), 8, int64(0));
    },
    says: /0000\.idx, byte 8: position 0 is not/,
    repaired: MESSAGES.slice(0, 3),
  },
  {
    found: 'a last position that points at an earlier message',
    make: async (dir) => {
      await removeLast(dir);
      await overwrite(join(dir, idx(OLDER)), 16, int64(ENTRY));
    },
    says: /0000\.idx, byte 16: position 17 is not/,
    repaired: MESSAGES.slice(0, 3),
  },
  {
    found: 'more zeros where positions should be than one append can leave',
    make: (dir) => truncate(join(dir, idx(LAST)), 20 * 1024 * 1024),
    says: /0003\.idx, byte \d+: more zeros follow where positions should be than one append can leave/,
    repaired: MESSAGES,
  },
  {
    found: 'a first position that is not 0',
    make: (dir) => overwrite(join(dir, idx(LAST)), 0, int64(1)),
    says: /0003\.idx, byte 0: the first position is not 0/,
    repaired: MESSAGES,
  },
  {
    found: 'a last indexed entry with a bad CRC and more bytes behind it',
    make: async (dir) => {
      await overwrite(join(dir, mmm(LAST)), ENTRY + 10, Buffer.from('#'));
      await append(join(dir, mmm(LAST)), Buffer.from('tail'));
    },
    says: /0003\.mmm, byte 17: the last indexed message fails its checksum and more bytes follow/,
    repaired: [...MESSAGES.slice(0, 4), undefined],
  },
  {
    found: 'offsets that do not join',
    make: async (dir) => {
      await truncate(join(dir, idx(OLDER)), 16);
      await truncate(join(dir, mmm(OLDER)), 2 * ENTRY);
    },
    says: /0003\.mmm, byte 0: offsets do not join: the segment before it ends at offset 2, this one begins at 3/,
  },
  {
    found: 'a first segment that does not begin at 0',
    make: async (dir) => {
      await rm(join(dir, idx(OLDER)));
      await rm(join(dir, mmm(OLDER)));
    },
    says: /offsets do not join/,
  },
  {
    found: 'the index of the last pair missing, the segment with data',
    make: (dir) => rm(join(dir, idx(LAST))),
    says: /0003\.mmm, byte 0: its twin .*0003\.idx is missing/,
    repaired: MESSAGES,
  },
  {
    found: 'the index of an older pair missing',
    make: (dir) => rm(join(dir, idx(OLDER))),
    says: /0000\.mmm, byte 0: its twin .*0000\.idx is missing/,
    repaired: MESSAGES,
  },
  {
    found: 'the segment of the last pair missing, the index with data',
    make: (dir) => rm(join(dir, mmm(LAST))),
    says: /0003\.idx, byte 0: its twin .*0003\.mmm is missing/,
    repaired: MESSAGES.slice(0, 3),
    loses: /offsets 3 to 4 of order\.created/,
  },
  {
    found: 'a torn tail in an older segment',
    make: (dir) => append(join(dir, mmm(OLDER)), Buffer.from('tail')),
    says: /0000\.mmm, byte 51: .*although another segment follows/,
    repaired: MESSAGES,
  },
  {
    found: 'half a record in an older index',
    make: (dir) => append(join(dir, idx(OLDER)), Buffer.alloc(4)),
    says: /0000\.idx, byte 28: .*half a record/,
    repaired: MESSAGES,
  },
  {
    found: 'an older index that lost its last position',
    make: (dir) => truncate(join(dir, idx(OLDER)), 16),
    says: /0000\.mmm, byte 34: .*although another segment follows/,
    repaired: MESSAGES,
  },
  {
    found: 'an older index that lost a position in its middle',
    make: (dir) => writeFile(join(dir, idx(OLDER)), int64(0, 2 * ENTRY)),
    says: /0003\.mmm, byte 0: offsets do not join: the segment before it ends at offset 2/,
    repaired: MESSAGES,
  },
  {
    found: 'an older index that is empty over a segment with a damaged message',
    make: async (dir) => {
      await truncate(join(dir, idx(OLDER)), 0);
      await overwrite(join(dir, mmm(OLDER)), ENTRY + 10, Buffer.from('#'));
    },
    says: /0000\.idx, byte 0: the offset index is empty/,
    repaired: [MESSAGES[0], undefined, ...MESSAGES.slice(2)],
  },
  {
    found: 'half a record in an older index, and a message under it whose length is damaged',
    make: async (dir) => {
      await append(join(dir, idx(OLDER)), Buffer.alloc(4));
      await overwrite(join(dir, mmm(OLDER)), ENTRY, Buffer.from([0, 0, 0, 99]));
    },
    says: /0000\.idx, byte 28: .*half a record/,
    repaired: [MESSAGES[0], undefined, ...MESSAGES.slice(2)],
  },
  {
    found: 'an older index that is empty over a message whose length is damaged',
    make: async (dir) => {
      await truncate(join(dir, idx(OLDER)), 0);
      await overwrite(join(dir, mmm(OLDER)), ENTRY, Buffer.from([0, 0, 0, 99]));
    },
    says: /0000\.idx, byte 0: the offset index is empty/,
  },
  {
    found: 'an older segment with one message more than its place in the chain',
    make: async (dir) => {
      const extra = (await readFile(join(dir, mmm(LAST)))).subarray(0, ENTRY);
      await append(join(dir, mmm(OLDER)), extra);
    },
    says: /0000\.mmm, byte 51: .*although another segment follows/,
  },
  {
    found: 'an empty older segment',
    make: async (dir) => {
      await truncate(join(dir, idx(OLDER)), 0);
      await truncate(join(dir, mmm(OLDER)), 0);
    },
    says: /0000\.idx, byte 0: the offset index is empty/,
  },
  {
    found: 'a directory where a segment file should be',
    make: async (dir) => {
      await rm(join(dir, mmm(LAST)));
      await mkdir(join(dir, mmm(LAST)));
    },
    says: /0003\.mmm, byte 0: a file of a segment is no ordinary file/,
  },
  {
    found: 'a segment name beyond every offset',
    make: (dir) => writeFile(join(dir, TOPIC, '9999999999999999999.mmm'), ''),
    says: /9999999999999999999\.mmm, byte 0: the first offset in the name is beyond/,
  },
];

async function removeLast(dir: string): Promise<void> {
  await rm(join(dir, mmm(LAST)));
  await rm(join(dir, idx(LAST)));
}
