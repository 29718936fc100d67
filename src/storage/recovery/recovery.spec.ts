import { mkdir, open, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { PASS_MAX_BYTES } from '../../core/index.js';
import { FaultyFileSystem } from '../../../test/support/faulty-file-system.js';
import { fileEngine, readTexts } from '../../../test/support/file-engine.js';
import { snapshot, temporaryDirectories } from '../../../test/support/temporary-directory.js';
import type { StartRefusedError } from './corrupt-log.error.js';
import { SYNCED_FILE_NAME } from './synced-topics.js';

const newDirectory = temporaryDirectories();

const TOPIC = 'order.created';
/** The first segment of the topic in the files below holds three messages, the last one two; each entry takes 8 + 9 bytes. */
const OLDER = '0000000000000000000';
const LAST = '0000000000000000003';
const ENTRY = 17;
const MESSAGES = ['message-0', 'message-1', 'message-2', 'message-3', 'message-4'];
const mmm = (segment: string): string => join(TOPIC, `${segment}.mmm`);
const idx = (segment: string): string => join(TOPIC, `${segment}.idx`);
const checkpoint = (dispatcher: string): string => join(TOPIC, 'checkpoints', `${dispatcher}.checkpoint`);

/** A data directory with five messages in two segments. */
async function dataDirectory(): Promise<string> {
  const rootDir = await newDirectory();
  const { engine } = fileEngine(rootDir, { segmentMaxBytes: 3 * ENTRY });
  await engine.open();
  const topic = await engine.create(TOPIC);
  await topic.append(MESSAGES.map((message) => Buffer.from(message)));
  await topic.committed('order-dispatcher');
  await engine.close();
  return rootDir;
}

async function append(path: string, bytes: Buffer): Promise<void> {
  await writeFile(path, Buffer.concat([await readFile(path), bytes]));
}

async function overwrite(path: string, position: number, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(bytes, 0, bytes.length, position);
  await file.close();
}

function int64(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 8);
  values.forEach((value, index) => bytes.writeBigInt64BE(BigInt(value), index * 8));
  return bytes;
}

const MANY = Array.from({ length: 200 }, (_, index) => `message-${String(index).padStart(3, '0')}`);
const MANY_ENTRY = 8 + 11;

/** The topic with one segment of 200 messages that came in one pass, and what `damage` leaves of their index. */
async function manyMessages(dir: string, damage: (index: Buffer) => Buffer): Promise<void> {
  await rm(join(dir, TOPIC), { recursive: true });
  const { engine } = fileEngine(dir);
  await engine.open();
  await (await engine.create(TOPIC)).append(MANY.map((message) => Buffer.from(message)));
  await engine.close();
  await writeFile(join(dir, idx(OLDER)), damage(await readFile(join(dir, idx(OLDER)))));
}

/** What of the index of a pass of 200 messages came to the disk, and how many of its messages are there after the start. */
const PARTS: readonly { readonly part: string; readonly damage: (index: Buffer) => Buffer; readonly count: number }[] = [
  { part: 'all but its first sector', damage: (index) => index.fill(0, 0, 512), count: 200 },
  { part: 'all but its second sector', damage: (index) => index.fill(0, 512, 1024), count: 200 },
  { part: 'only its third sector', damage: (index) => index.fill(0, 0, 1024).fill(0, 1536), count: 192 },
  { part: 'all but the end of its second sector', damage: (index) => index.fill(0, 800, 1024), count: 200 },
  { part: 'all but the end of its second sector, torn within a record', damage: (index) => index.fill(0, 807, 1024), count: 200 },
  { part: 'its beginning, to within a record', damage: (index) => index.fill(0, 1015), count: 126 },
  { part: 'its beginning, to the end of a sector', damage: (index) => index.subarray(0, 1024), count: 128 },
  { part: 'all but its first sector, to within a record', damage: (index) => index.fill(0, 0, 512).fill(0, 1599), count: 199 },
];

interface Row {
  readonly found: string;
  readonly make: (dir: string) => Promise<void>;
}

interface GoodRow extends Row {
  readonly messages: readonly (string | undefined)[];
  readonly warning?: RegExp;
}

const STARTS: readonly GoodRow[] = [
  { found: 'a segment that ends where its last indexed entry does', make: async () => undefined, messages: MESSAGES },
  {
    found: 'a segment longer than its index says, by part of an entry',
    make: (dir) => append(join(dir, mmm(LAST)), Buffer.from('half an ent')),
    messages: MESSAGES,
    warning: /0003\.mmm: 11 bytes at the end/,
  },
  {
    found: 'a segment longer by exactly one pass',
    make: (dir) => truncate(join(dir, mmm(LAST)), 2 * ENTRY + PASS_MAX_BYTES),
    messages: MESSAGES,
    warning: /16777216 bytes at the end/,
  },
  {
    found: 'an index that ends in half a record',
    make: (dir) => append(join(dir, idx(LAST)), Buffer.from([0, 0, 0, 0, 1])),
    messages: MESSAGES,
    warning: /0003\.idx: 5 bytes at the end/,
  },
  {
    found: 'an index that ends in zeros where positions should be',
    make: (dir) => append(join(dir, idx(LAST)), Buffer.alloc(24)),
    messages: MESSAGES,
    warning: /24 bytes at the end/,
  },
  {
    found: 'an index that ends in zeros and half a record, over a segment that is longer',
    make: async (dir) => {
      await append(join(dir, mmm(LAST)), Buffer.alloc(40));
      await append(join(dir, idx(LAST)), Buffer.alloc(20));
    },
    messages: MESSAGES,
    warning: /20 bytes at the end/,
  },
  {
    found: 'an index whose only whole thing is half a record',
    make: async (dir) => {
      await writeFile(join(dir, idx(LAST)), Buffer.alloc(5));
      await writeFile(join(dir, mmm(LAST)), Buffer.from('something'));
    },
    messages: MESSAGES.slice(0, 3),
    warning: /5 bytes at the end/,
  },
  {
    found: 'position 0 as the only record, over nothing but zeros',
    make: async (dir) => {
      await writeFile(join(dir, idx(LAST)), Buffer.alloc(8));
      await writeFile(join(dir, mmm(LAST)), Buffer.alloc(100));
    },
    messages: MESSAGES.slice(0, 3),
    warning: /8 bytes at the end/,
  },
  {
    found: 'position 0 and zeros where positions should be, over nothing but zeros',
    make: async (dir) => {
      await writeFile(join(dir, idx(LAST)), Buffer.alloc(43));
      await writeFile(join(dir, mmm(LAST)), Buffer.alloc(3));
    },
    messages: MESSAGES.slice(0, 3),
  },
  {
    found: 'an empty last segment',
    make: async (dir) => {
      await truncate(join(dir, idx(LAST)), 0);
      await truncate(join(dir, mmm(LAST)), 0);
    },
    messages: MESSAGES.slice(0, 3),
  },
  {
    found: 'only the segment file of the last pair, and that one empty',
    make: async (dir) => {
      await rm(join(dir, idx(LAST)));
      await truncate(join(dir, mmm(LAST)), 0);
    },
    messages: MESSAGES.slice(0, 3),
    warning: /0003\.idx: a new segment was begun/,
  },
  {
    found: 'only the index of the last pair, and that one empty',
    make: async (dir) => {
      await rm(join(dir, mmm(LAST)));
      await truncate(join(dir, idx(LAST)), 0);
    },
    messages: MESSAGES.slice(0, 3),
    warning: /0003\.mmm: a new segment was begun/,
  },
  {
    found: 'a last indexed entry with a bad CRC',
    make: (dir) => overwrite(join(dir, mmm(LAST)), ENTRY + 10, Buffer.from('#')),
    messages: [...MESSAGES.slice(0, 4), undefined],
  },
  {
    found: 'a flipped bit in the middle',
    make: (dir) => overwrite(join(dir, mmm(OLDER)), ENTRY + 10, Buffer.from('#')),
    messages: [MESSAGES[0], undefined, ...MESSAGES.slice(2)],
  },
  {
    found: 'a damaged length between two sound neighbours of the last pass',
    make: (dir) => overwrite(join(dir, mmm(LAST)), 0, Buffer.from([0, 0, 0, 99])),
    messages: [...MESSAGES.slice(0, 3), undefined, MESSAGES[4]],
  },
  {
    found: 'a checkpoint beyond the end',
    make: (dir) => writeFile(join(dir, checkpoint('order-dispatcher')), int64(6)),
    messages: MESSAGES,
    warning: /order-dispatcher\.checkpoint: it says 6, but the topic ends at 5/,
  },
  {
    found: 'a checkpoint beyond every offset',
    make: (dir) => writeFile(join(dir, checkpoint('order-dispatcher')), Buffer.from('7fffffffffffffff', 'hex')),
    messages: MESSAGES,
    warning: /but the topic ends at 5/,
  },
  {
    found: 'anything else in the directories',
    make: async (dir) => {
      await writeFile(join(dir, 'a file in the root'), 'mine');
      await writeFile(join(dir, TOPIC, 'notes.txt'), 'mine');
      await writeFile(join(dir, TOPIC, 'checkpoints', 'notes.txt'), 'mine');
      await mkdir(join(dir, 'lost+found'));
      await symlink(join(dir, TOPIC), join(dir, 'a.link'));
    },
    messages: MESSAGES,
    warning: /notes\.txt is none of the broker's files and is left alone/,
  },
];

const REFUSALS: readonly (Row & { readonly says: RegExp })[] = [
  {
    found: 'a segment shorter than its index says',
    make: (dir) => truncate(join(dir, mmm(LAST)), 2 * ENTRY - 1),
    says: /0003\.mmm, byte 17: .*acknowledged bytes are missing/,
  },
  {
    found: 'a segment that ends within the header of the last indexed entry',
    make: (dir) => truncate(join(dir, mmm(LAST)), ENTRY + 4),
    says: /0003\.mmm, byte 17: .*acknowledged bytes are missing/,
  },
  {
    found: 'a position at the end of the segment',
    make: (dir) => append(join(dir, idx(LAST)), int64(2 * ENTRY)),
    says: /0003\.idx, byte 16: the last position is 34, but the segment file has only 34 bytes/,
  },
  {
    found: 'a position past the end of the segment',
    make: (dir) => append(join(dir, idx(LAST)), int64(5000)),
    says: /0003\.idx, byte 16: the last position is 5000/,
  },
  {
    found: 'position 0 over an empty segment',
    make: (dir) => truncate(join(dir, mmm(LAST)), 0),
    says: /0003\.idx, byte 8: the last position is 17/,
  },
  {
    found: 'a negative position',
    make: (dir) => overwrite(join(dir, idx(LAST)), 8, int64(-17)),
    says: /0003\.idx, byte 8: the last position is no number/,
  },
  {
    found: 'zeros in the segment under a valid record',
    make: (dir) => overwrite(join(dir, mmm(LAST)), ENTRY, Buffer.alloc(ENTRY)),
    says: /0003\.mmm, byte 17: zeros stand where the offset index has a message/,
  },
  {
    found: 'a segment longer than a pass',
    make: (dir) => truncate(join(dir, mmm(LAST)), 2 * ENTRY + PASS_MAX_BYTES + 1),
    says: /0003\.mmm, byte 34: 16777217 bytes follow/,
  },
  {
    found: 'an index emptied under a segment longer than a pass',
    make: async (dir) => {
      await truncate(join(dir, idx(LAST)), 0);
      await truncate(join(dir, mmm(LAST)), PASS_MAX_BYTES + 1);
    },
    says: /0003\.mmm, byte 0: 16777217 bytes follow/,
  },
  {
    found: 'a bad record with good ones after it',
    make: async (dir) => {
      await rm(join(dir, mmm(LAST)));
      await rm(join(dir, idx(LAST)));
      await overwrite(join(dir, idx(OLDER)), 8, int64(20));
    },
    says: /0000\.idx, byte 8: position 20 is not where the message before it ends/,
  },
  {
    found: 'zeros as a position with good ones after it',
    make: async (dir) => {
      await rm(join(dir, mmm(LAST)));
      await rm(join(dir, idx(LAST)));
      await overwrite(join(dir, idx(OLDER)), 8, int64(0));
    },
    says: /0000\.idx, byte 8: position 0 is not/,
  },
  {
    found: 'an index from which a position was taken out',
    make: (dir) => manyMessages(dir, (index) => Buffer.concat([index.subarray(0, 800), index.subarray(808)])),
    says: /0000\.idx, byte 800: position 1919 is not where the message before it ends/,
  },
  {
    found: 'zeros as positions that end where no sector does, with good ones after them',
    make: (dir) => manyMessages(dir, (index) => index.fill(0, 800, 1016)),
    says: /0000\.idx, byte 800: position 0 is not/,
  },
  {
    found: 'a sector of zeros in an index, and a message under it that is damaged',
    make: async (dir) => {
      await manyMessages(dir, (index) => index.fill(0, 512, 1024));
      await overwrite(join(dir, mmm(OLDER)), 70 * MANY_ENTRY + 12, Buffer.from('#'));
    },
    says: /0000\.idx, byte 512: position 0 is not/,
  },
  {
    found: 'a last position that points at an earlier message',
    make: async (dir) => {
      await rm(join(dir, mmm(LAST)));
      await rm(join(dir, idx(LAST)));
      await overwrite(join(dir, idx(OLDER)), 16, int64(ENTRY));
    },
    says: /0000\.idx, byte 16: position 17 is not/,
  },
  {
    found: 'more zeros where positions should be than one append can leave',
    make: (dir) => truncate(join(dir, idx(LAST)), 20 * 1024 * 1024),
    says: /0003\.idx, byte \d+: more zeros follow where positions should be than one append can leave/,
  },
  {
    found: 'a first position that is not 0',
    make: (dir) => overwrite(join(dir, idx(LAST)), 0, int64(1)),
    says: /0003\.idx, byte 0: the first position is not 0/,
  },
  {
    found: 'a last indexed entry with a bad CRC and more bytes behind it',
    make: async (dir) => {
      await overwrite(join(dir, mmm(LAST)), ENTRY + 10, Buffer.from('#'));
      await append(join(dir, mmm(LAST)), Buffer.from('tail'));
    },
    says: /0003\.mmm, byte 17: the last indexed message fails its checksum and more bytes follow/,
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
    found: 'the index of a pair missing, the segment with data',
    make: (dir) => rm(join(dir, idx(LAST))),
    says: /0003\.mmm, byte 0: its twin .*0003\.idx is missing/,
  },
  {
    found: 'the segment of a pair missing, the index with data',
    make: (dir) => rm(join(dir, mmm(LAST))),
    says: /0003\.idx, byte 0: its twin .*0003\.mmm is missing/,
  },
  {
    found: 'a torn tail in an older segment',
    make: (dir) => append(join(dir, mmm(OLDER)), Buffer.from('tail')),
    says: /0000\.mmm, byte 51: .*although another segment follows/,
  },
  {
    found: 'half a record in an older index',
    make: (dir) => append(join(dir, idx(OLDER)), Buffer.alloc(4)),
    says: /0000\.idx, byte 28: .*half a record/,
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

describe('the recovery at the start', () => {
  it.each(STARTS)('starts with $found', async ({ make, messages, warning }) => {
    const rootDir = await dataDirectory();
    await make(rootDir);
    const { engine, log } = fileEngine(rootDir, { segmentMaxBytes: 3 * ENTRY });
    const topics = await engine.open();
    expect(topics.map((topic) => topic.topic)).toEqual([TOPIC]);
    const [topic] = topics;
    if (topic === undefined) throw new Error('no topic');
    expect(await readTexts(topic)).toEqual(messages);
    if (warning !== undefined) expect(log.join('\n')).toMatch(warning);
    // Nothing is left of what was cut, and every message has its record.
    const last = messages.length - 3;
    expect((await stat(join(rootDir, mmm(LAST)))).size).toBe(last * ENTRY);
    expect((await stat(join(rootDir, idx(LAST)))).size).toBe(last * 8);

    // And it can be used on, and started again.
    expect((await topic.append([Buffer.from('one more')])).offsets).toEqual([messages.length]);
    expect(await readTexts(topic)).toEqual([...messages, 'one more']);
    await engine.close();
    const again = fileEngine(rootDir, { segmentMaxBytes: 3 * ENTRY });
    const [reopened] = await again.engine.open();
    expect(reopened && (await readTexts(reopened))).toEqual([...messages, 'one more']);
    await again.engine.close();
  });

  it.each(STARTS)('leaves the same files when it runs twice, with $found', async ({ make }) => {
    const rootDir = await dataDirectory();
    await make(rootDir);
    for (const run of [1, 2]) {
      const before = run === 2 ? await snapshot(rootDir) : undefined;
      const { engine } = fileEngine(rootDir);
      await engine.open();
      await engine.close();
      if (before !== undefined) expect(await snapshot(rootDir)).toEqual(before);
    }
  });

  it.each(STARTS)('ends the same way when it was interrupted at any call, with $found', async ({ make, messages }) => {
    const rootDir = await dataDirectory();
    await make(rootDir);
    for (const operation of ['truncate', 'sync', 'syncDirectory', 'write'] as const) {
      const fileSystem = new FaultyFileSystem();
      fileSystem.fail({ operation, path: /./, errno: 'EIO' });
      const { engine } = fileEngine(rootDir, { fileSystem });
      await engine.open().then(
        () => engine.close(),
        () => undefined,
      );
    }
    const { engine } = fileEngine(rootDir);
    const [topic] = await engine.open();
    expect(topic && (await readTexts(topic))).toEqual(messages);
    await engine.close();
  });

  it.each(PARTS)(
    'has every message whose position can be known when of the index of a pass came to the disk $part',
    async ({ damage, count }) => {
      const rootDir = await newDirectory();
      await mkdir(join(rootDir, TOPIC));
      await manyMessages(rootDir, damage);
      for (const run of [1, 2]) {
        const { engine, log } = fileEngine(rootDir);
        const [topic] = await engine.open();
        expect(topic && (await readTexts(topic))).toEqual(MANY.slice(0, count));
        if (run === 2) expect(log.filter((line) => line.startsWith('warn'))).toEqual([]);
        await engine.close();
      }
      expect((await readFile(join(rootDir, idx(OLDER)))).equals(int64(...MANY.slice(0, count).map((_, index) => index * MANY_ENTRY)))).toBe(
        true,
      );
    },
  );

  it.each(REFUSALS)('refuses $found, names file and position, and changes nothing', async ({ make, says }) => {
    const rootDir = await dataDirectory();
    await make(rootDir);
    const before = await snapshot(rootDir);
    const { engine } = fileEngine(rootDir);
    const refusal: StartRefusedError = await engine.open().then(
      () => {
        throw new Error('it started');
      },
      (error: StartRefusedError) => error,
    );
    expect(refusal.code).toBe('MMMQ_CORRUPT');
    expect(refusal.message).toMatch(says);
    expect(refusal.message).toMatch(/restore this topic's directory from a copy/);
    expect(await snapshot(rootDir)).toEqual(before);
  });

  it('cuts the index before the segment, each synced before the next, and syncs all it relies on before it serves', async () => {
    const rootDir = await dataDirectory();
    await append(join(rootDir, mmm(LAST)), Buffer.alloc(40));
    await append(join(rootDir, idx(LAST)), Buffer.alloc(20));
    await writeFile(join(rootDir, checkpoint('order-dispatcher')), int64(6));
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    const steps = fileSystem.calls.filter((call) => /^(truncate|sync|syncDirectory|write) (?!\.mmmq\.)/.test(call));
    expect(steps).toEqual([
      `syncDirectory ${basename(dirname(rootDir))}`,
      `syncDirectory ${basename(rootDir)}`,
      `truncate ${LAST}.idx`,
      `sync ${LAST}.idx`,
      `truncate ${LAST}.mmm`,
      `sync ${LAST}.mmm`,
      'write order-dispatcher.checkpoint',
      'sync order-dispatcher.checkpoint',
      `sync ${LAST}.mmm`,
      // Its positions may be in the kernel's memory alone, where a sync does not write them any more.
      `write ${LAST}.idx`,
      `sync ${LAST}.idx`,
      'syncDirectory checkpoints',
      `syncDirectory ${TOPIC}`,
    ]);
    await engine.close();
  });

  it('names every topic that is corrupt at once, and repairs none of the others before it refuses', async () => {
    const rootDir = await dataDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    for (const name of ['broken', 'torn']) await (await engine.create(name)).append([Buffer.from('x')]);
    await engine.close();
    await truncate(join(rootDir, 'broken', `${OLDER}.mmm`), 8);
    await truncate(join(rootDir, mmm(LAST)), 8);
    await append(join(rootDir, 'torn', `${OLDER}.mmm`), Buffer.from('tail'));
    const before = await snapshot(rootDir);
    const refusal: Error = await fileEngine(rootDir)
      .engine.open()
      .then(
        () => new Error('it started'),
        (error: Error) => error,
      );
    expect(refusal.message).toContain(join(rootDir, 'broken', `${OLDER}.mmm`));
    expect(refusal.message).toContain(join(rootDir, idx(LAST)));
    expect(await snapshot(rootDir)).toEqual(before);
  });

  it('takes an I/O error for what it is: it refuses, says so, and calls nothing corrupt', async () => {
    const rootDir = await dataDirectory();
    await rm(join(rootDir, SYNCED_FILE_NAME), { force: true });
    const before = await snapshot(rootDir);
    for (const errno of ['EIO', 'EMFILE', 'EACCES']) {
      const fileSystem = new FaultyFileSystem();
      fileSystem.fail({ operation: 'open', path: /0003\.idx$/, errno });
      const { engine } = fileEngine(rootDir, { fileSystem });
      await expect(engine.open()).rejects.toMatchObject({ code: 'MMMQ_IO', message: expect.stringContaining(errno) });
    }
    const after = await snapshot(rootDir);
    delete before['.mmmq.lock'];
    delete after['.mmmq.lock'];
    expect(after).toEqual(before);
  });

  it('reads sizes and the last pass, not the whole log', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    const topic = await engine.create(TOPIC);
    // 40 MiB in one segment: more than two passes.
    for (let index = 0; index < 40; index += 1) await topic.append([Buffer.alloc(1024 * 1024 - 8, 'x')]);
    await engine.close();
    await rm(join(rootDir, SYNCED_FILE_NAME), { force: true });
    const fileSystem = new FaultyFileSystem();
    const again = fileEngine(rootDir, { fileSystem });
    await again.engine.open();
    expect(fileSystem.calls.filter((call) => call === 'read 0000000000000000000.mmm').length).toBeLessThanOrEqual(20);
    expect((await stat(join(rootDir, TOPIC, `${OLDER}.mmm`))).size).toBe(40 * 1024 * 1024);
    await again.engine.close();
  });
});
