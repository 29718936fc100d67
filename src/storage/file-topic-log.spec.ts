import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FaultyFileSystem } from '../../test/support/faulty-file-system.js';
import { fileEngine, readTexts } from '../../test/support/file-engine.js';
import { ManualClock } from '../../test/support/manual-clock.js';
import { snapshot, temporaryDirectories } from '../../test/support/temporary-directory.js';
import { until } from '../../test/support/until.js';
import { encodeEntries } from './segment/index.js';

const newDirectory = temporaryDirectories();

const texts = (...values: string[]): Buffer[] => values.map((value) => Buffer.from(value));

/** Waits until the log waits before it tries again, and lets that time pass. */
async function nextWait(clock: ManualClock): Promise<void> {
  await until(() => clock.waiting > 0);
  clock.advance(clock.asked.at(-1) ?? 0);
}

describe('an append', () => {
  it('is on the disk in the order data, sync, positions, sync before it is visible', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('first'));
    fileSystem.calls.length = 0;
    let countAtIndexSync = -1;
    const unstrike = fileSystem.calls.push.bind(fileSystem.calls);
    fileSystem.calls.push = (...calls) => {
      if (calls[0] === 'sync 0000000000000000000.idx') countAtIndexSync = topic.count;
      return unstrike(...calls);
    };
    await topic.append(texts('second', 'third'));
    expect([...fileSystem.calls]).toEqual([
      'write 0000000000000000000.mmm',
      'sync 0000000000000000000.mmm',
      'write 0000000000000000000.idx',
      'sync 0000000000000000000.idx',
    ]);
    expect(countAtIndexSync).toBe(1);
    expect(topic.count).toBe(3);
    await engine.close();
  });

  it('makes the names of a new topic durable before the first acknowledgement', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    fileSystem.calls.length = 0;
    const topic = await engine.create('t');
    await topic.append(texts('first'));
    const root = rootDir.slice(rootDir.lastIndexOf('/') + 1);
    const calls = fileSystem.calls.filter((call) => !call.startsWith('open') || call.endsWith('.mmm'));
    expect(calls.indexOf('makeDirectory t')).toBeLessThan(calls.indexOf(`syncDirectory ${root}`));
    expect(calls.indexOf(`syncDirectory ${root}`)).toBeLessThan(calls.indexOf('write 0000000000000000000.mmm'));
    expect(calls.lastIndexOf('syncDirectory t')).toBeLessThan(calls.indexOf('write 0000000000000000000.mmm'));
    expect(calls.lastIndexOf('syncDirectory t')).toBeGreaterThan(calls.indexOf('open 0000000000000000000.mmm'));
    await engine.close();
  });

  it('tells those who wait for arrivals, once for each rise and after it is durable', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    const topic = await engine.create('t');
    const seen: number[] = [];
    const end = topic.onArrival(() => seen.push(topic.count));
    topic.onArrival(() => {
      throw new Error('a listener that fails');
    });
    await topic.append(texts('a', 'b'));
    await topic.append(texts('c'));
    end();
    await topic.append(texts('d'));
    expect(seen).toEqual([2, 3]);
    await engine.close();
  });

  it.each(['mmm', 'idx'])(
    'that finds the disk full in the .%s file leaves nothing behind, and the topic goes on by itself',
    async (extension) => {
      const rootDir = await newDirectory();
      const fileSystem = new FaultyFileSystem();
      const { engine } = fileEngine(rootDir, { fileSystem });
      await engine.open();
      const topic = await engine.create('t');
      await topic.append(texts('before'));
      const before = await snapshot(join(rootDir, 't'));
      fileSystem.left = { bytes: 0 };
      fileSystem.fail({ operation: 'write', path: new RegExp(`\\.${extension}$`), errno: 'ENOSPC', times: 1, bytesWritten: 5 });
      const outcome = await topic.append(texts('lost'));
      expect(outcome).toMatchObject({ offsets: [], failure: { code: 'MMMQ_DISK_FULL' } });
      expect(await snapshot(join(rootDir, 't'))).toEqual(before);
      expect(await engine.problems()).toEqual([{ topic: 't', reason: expect.stringContaining('ENOSPC') }]);
      fileSystem.left = { bytes: 1024 ** 3 };
      expect(await engine.problems()).toEqual([]);
      expect((await topic.append(texts('after'))).offsets).toEqual([1]);
      expect(await readTexts(topic)).toEqual(['before', 'after']);
      await engine.close();
    },
  );

  it('that fails in its second segment keeps what the first one took, and tells of it', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem, segmentMaxBytes: 1 });
    await engine.open();
    const topic = await engine.create('t');
    const seen: number[] = [];
    topic.onArrival(() => seen.push(topic.count));
    fileSystem.fail({ operation: 'write', path: /0001\.mmm$/, errno: 'EIO', times: 1 });
    expect(await topic.append(texts('kept', 'lost'))).toMatchObject({ offsets: [0], failure: { code: 'MMMQ_APPEND_FAILED' } });
    expect(seen).toEqual([1]);
    expect((await topic.append(texts('next'))).offsets).toEqual([1]);
    expect(await readTexts(topic)).toEqual(['kept', 'next']);
    await engine.close();
  });

  it('that cannot open a file has not happened, and the next one goes on', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    // No idle file stays open, so every append opens its files anew.
    const { engine } = fileEngine(rootDir, { fileSystem, maxOpenFiles: 0 });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('a'));
    for (const extension of ['mmm', 'idx']) {
      fileSystem.fail({ operation: 'open', path: new RegExp(`0000\\.${extension}$`), errno: 'EACCES', times: 1 });
      fileSystem.calls.length = 0;
      expect(await topic.append(texts('b'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_APPEND_FAILED' } });
      expect(fileSystem.calls.filter((call) => call.startsWith('write'))).toEqual([]);
    }
    expect((await topic.append(texts('b'))).offsets).toEqual([1]);
    expect(fileSystem.calls.filter((call) => call.startsWith('open'))).toHaveLength(4);
    await engine.close();
  });

  it('that could not begin a new segment can be repeated', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem, segmentMaxBytes: 1 });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('a'));
    fileSystem.fail({ operation: 'open', path: /0001\.idx$/, errno: 'EACCES', times: 1 });
    expect(await topic.append(texts('b'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_APPEND_FAILED' } });
    expect((await topic.append(texts('b again'))).offsets).toEqual([1]);
    await engine.close();
  });

  it.each([
    ['sync', /\.mmm$/],
    ['sync', /\.idx$/],
    ['truncate', /\.mmm$/],
  ] as const)('whose %s of %s fails makes the topic refuse until it was re-opened, and reading goes on', async (operation, path) => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const clock = new ManualClock();
    const { engine, log } = fileEngine(rootDir, { fileSystem, clock });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('before'));
    if (operation === 'truncate') fileSystem.fail({ operation: 'write', path, errno: 'EIO', times: 1, bytesWritten: 3 });
    fileSystem.fail({ operation, path, errno: 'EIO', times: 2 });
    expect(await topic.append(texts('unknown'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_APPEND_FAILED' } });
    expect(await topic.append(texts('refused'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_TOPIC_REFUSING' } });
    expect(await engine.problems()).toEqual([{ topic: 't', reason: expect.stringContaining('EIO') }]);
    expect(await readTexts(topic)).toEqual(['before']);
    expect(await topic.committed('d')).toBe(0);

    await nextWait(clock);
    await nextWait(clock);
    await until(async () => (await engine.problems()).length === 0);
    expect(Math.floor((clock.asked[0] ?? 0) / 1000)).toBe(1);
    expect(Math.floor((clock.asked[1] ?? 0) / 1000)).toBe(2);
    expect(log.join('\n')).toMatch(/topic t takes messages again, from offset 1 on/);
    expect((await topic.append(texts('after'))).offsets).toEqual([1]);
    expect(await readTexts(topic)).toEqual(['before', 'after']);
    await engine.close();
  });

  it('is on the disk also when the segment before it could not be begun durably', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const clock = new ManualClock();
    const { engine } = fileEngine(rootDir, { fileSystem, clock, segmentMaxBytes: 1 });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('a'));
    fileSystem.fail({ operation: 'syncDirectory', path: /\/t$/, errno: 'EIO', times: 1 });
    expect(await topic.append(texts('b'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_APPEND_FAILED' } });
    expect(await topic.append(texts('refused'))).toMatchObject({ failure: { code: 'MMMQ_TOPIC_REFUSING' } });
    await nextWait(clock);
    await until(async () => (await engine.problems()).length === 0);
    fileSystem.calls.length = 0;
    expect((await topic.append(texts('c'))).offsets).toEqual([1]);
    // The names of the first attempt may not be durable: the files are made anew, and their directory is synced again.
    expect(fileSystem.calls.filter((call) => call.startsWith('syncDirectory'))).toEqual(['syncDirectory t']);
    expect(fileSystem.calls.filter((call) => call === 'open 0000000000000000001.mmm')).toHaveLength(4);
    await engine.close();
    const again = fileEngine(rootDir, { segmentMaxBytes: 1 });
    const [reopened] = await again.engine.open();
    expect(reopened && (await readTexts(reopened))).toEqual(['a', 'c']);
    await again.engine.close();
  });

  it('that failed is cut back in the index first, each file synced', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('a'));
    fileSystem.fail({ operation: 'write', path: /\.idx$/, errno: 'EIO', times: 1 });
    fileSystem.calls.length = 0;
    await topic.append(texts('b'));
    const [mmm, idx] = ['0000000000000000000.mmm', '0000000000000000000.idx'];
    expect(fileSystem.calls).toEqual([
      `write ${mmm}`,
      `sync ${mmm}`,
      `write ${idx}`,
      `truncate ${idx}`,
      `sync ${idx}`,
      `truncate ${mmm}`,
      `sync ${mmm}`,
    ]);
    await engine.close();
  });

  it('is refused as long as the files do not hold what was read from them before', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const clock = new ManualClock();
    const { engine, log } = fileEngine(rootDir, { fileSystem, clock });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('a', 'b'));
    fileSystem.fail({ operation: 'sync', path: /\.mmm$/, errno: 'EIO', times: 1 });
    await topic.append(texts('c'));
    const path = join(rootDir, 't/0000000000000000000.mmm');
    const bytes = await readFile(path);
    await writeFile(path, '');
    fileSystem.calls.length = 0;
    await nextWait(clock);
    await until(() => log.join('\n').includes('still refuses messages'));
    // The handle that saw the failure is not used again.
    expect(fileSystem.calls.slice(0, 2)).toEqual(['open 0000000000000000000.mmm', 'open 0000000000000000000.idx']);
    expect(await topic.append(texts('d'))).toMatchObject({ failure: { code: 'MMMQ_TOPIC_REFUSING' } });
    await writeFile(path, bytes);
    await nextWait(clock);
    await until(async () => (await engine.problems()).length === 0);
    expect((await topic.append(texts('d'))).offsets).toEqual([2]);
    expect(await readTexts(topic)).toEqual(['a', 'b', 'd']);
    await engine.close();
  });

  it('is refused after close', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    const topic = await engine.create('t');
    await engine.close();
    await engine.close();
    expect(await topic.append(texts('late'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_CLOSED' } });
  });
});

describe('reading', () => {
  async function topicOf(messages: string[], damage: (dir: string) => Promise<void>, fileSystem = new FaultyFileSystem()) {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts(...messages));
    await damage(join(rootDir, 't'));
    return { engine, topic, fileSystem };
  }

  async function overwrite(path: string, position: number, bytes: Buffer): Promise<void> {
    const file = await open(path, 'r+');
    await file.write(bytes, 0, bytes.length, position);
    await file.close();
  }

  const int64 = (value: number): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64BE(BigInt(value));
    return bytes;
  };
  const MMM = '0000000000000000000.mmm';
  const IDX = '0000000000000000000.idx';
  // Each entry takes 16 bytes: 0, 16, 32, 48, 64.
  const SHORTER = encodeEntries([Buffer.from('shorter')], 0).bytes;
  const FIVE = ['message0', 'message1', 'message2', 'message3', 'message4'];

  it.each([
    ['a flipped payload byte', MMM, 16 + 9, Buffer.from('#'), 1],
    ['a flipped checksum', MMM, 16 + 5, Buffer.from('#'), 1],
    ['a length of zero', MMM, 16, Buffer.from([0, 0, 0, 0]), 1],
    ['a negative length', MMM, 16, Buffer.from([255, 255, 255, 255]), 1],
    ['a length of two gigabytes', MMM, 16, Buffer.from([127, 255, 255, 255]), 1],
    ['a length beyond the segment', MMM, 16, Buffer.from([0, 15, 0, 0]), 1],
    ['a length beyond the segment in the last message', MMM, 64, Buffer.from([0, 15, 0, 0]), 4],
    ['a position beyond the segment', IDX, 8, int64(5000), 1],
    ['a negative position', IDX, 8, int64(-5), 1],
    ['a position inside another message', IDX, 8, int64(3), 1],
    ['the position of another message that is sound', IDX, 8, int64(48), 1],
    ['the position of an earlier message, in the last record', IDX, 32, int64(0), 4],
    ['a first position that is another message', IDX, 0, int64(16), 0],
    ['the bytes of another message that is sound, and shorter', MMM, 16, SHORTER, 1],
    ['the bytes of another message that is sound, and shorter, at the beginning', MMM, 0, SHORTER, 0],
    ['the bytes of another message that is sound, and shorter, at the end', MMM, 64, SHORTER, 4],
  ] as const)('skips the one message with %s and no neighbour', async (_name, file, position, bytes, damaged) => {
    const { engine, topic } = await topicOf(FIVE, (dir) => overwrite(join(dir, file), position, bytes));
    const expected = FIVE.map((message, offset) => (offset === damaged ? undefined : message));
    for (const from of [0, 1, 2, 3, 4]) expect(await readTexts(topic, from)).toEqual(expected.slice(from));
    await engine.close();
  });

  it('throws on an I/O error and skips nothing', async () => {
    const { engine, topic, fileSystem } = await topicOf(FIVE, async () => undefined);
    fileSystem.fail({ operation: 'read', path: /\.mmm$/, errno: 'EIO', times: 1 });
    await expect(topic.read(0, { maxCount: 9, maxBytes: 999 })).rejects.toMatchObject({ code: 'MMMQ_IO', errno: 'EIO' });
    expect(await readTexts(topic)).toEqual(FIVE);
    await engine.close();
  });
});
