import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FaultyFileSystem } from '../../../test/support/faulty-file-system.js';
import { fileEngine, readTexts } from '../../../test/support/file-engine.js';
import { temporaryDirectories } from '../../../test/support/temporary-directory.js';

const newDirectory = temporaryDirectories();

/** A payload that takes `bytes` bytes of a segment, header included. */
function payloadOfEntryBytes(bytes: number, fill = 'x'): Buffer {
  return Buffer.from(fill.repeat(bytes - 8));
}

describe('a segment chain', () => {
  it('finds offset 1030 in segment 1024, at relative offset 6, through byte 48 of its index', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    // 1,024 entries of 64 bytes fill the first segment to its limit; the next ones are the example's: byte 0, 82, …, 412 for the seventh.
    const { engine } = fileEngine(rootDir, { fileSystem, segmentMaxBytes: 64 * 1024 });
    await engine.open();
    const topic = await engine.create('order.created');
    await topic.append(Array.from({ length: 1024 }, () => payloadOfEntryBytes(64)));
    const second = [82, 66, 66, 66, 66, 66].map((bytes) => payloadOfEntryBytes(bytes));
    await topic.append([...second, Buffer.from('{"the":"message at offset 1030"}'), Buffer.from('{"the":"one behind it"}')]);

    const index = await readFile(join(rootDir, 'order.created/0000000000000001024.idx'));
    expect(index.readBigInt64BE(8)).toBe(82n);
    expect(index.readBigInt64BE(6 * 8)).toBe(412n);
    const [entry] = await topic.read(1030, { maxCount: 1, maxBytes: 1000 });
    expect(entry?.payload?.toString()).toBe('{"the":"message at offset 1030"}');
    await engine.close();
  });

  it('begins a new segment at first offset + message count: 1200 + 401 = 1601', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir, { segmentMaxBytes: 401 * 32 });
    await engine.open();
    const topic = await engine.create('order.new');
    // Larger messages fill a segment with fewer of them: 400, 400, 400 and then 401 smaller ones.
    for (let segment = 0; segment < 3; segment += 1) {
      await topic.append(Array.from({ length: 399 }, () => payloadOfEntryBytes(32)));
      await topic.append([payloadOfEntryBytes(401 * 32 - 399 * 32)]);
    }
    await topic.append(Array.from({ length: 401 }, () => payloadOfEntryBytes(32)));
    expect(topic.count).toBe(1601);
    await topic.append([Buffer.from('first of the next')]);
    expect(await readFile(join(rootDir, 'order.new/0000000000000001200.idx'))).toHaveLength(401 * 8);
    expect((await readFile(join(rootDir, 'order.new/0000000000000001601.mmm'))).toString()).toContain('first of the next');
    await engine.close();
  });

  it('rotates before the append that finds the segment full, also inside one group, and lets the last append pass the limit', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir, { segmentMaxBytes: 100 });
    await engine.open();
    const topic = await engine.create('t');
    const outcome = await topic.append([
      payloadOfEntryBytes(60),
      payloadOfEntryBytes(60),
      payloadOfEntryBytes(60),
      payloadOfEntryBytes(300),
    ]);
    expect(outcome.offsets).toEqual([0, 1, 2, 3]);
    expect(await readFile(join(rootDir, 't/0000000000000000000.mmm'))).toHaveLength(120);
    expect(await readFile(join(rootDir, 't/0000000000000000002.mmm'))).toHaveLength(360);
    await engine.close();
  });

  it('finishes the old segment before it makes the new one, and syncs the directory before it writes there', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem, segmentMaxBytes: 10 });
    await engine.open();
    const topic = await engine.create('t');
    fileSystem.calls.length = 0;
    await topic.append([Buffer.from('first'), Buffer.from('second')]);
    const mmm = (base: number): string => `${String(base).padStart(19, '0')}.mmm`;
    const idx = (base: number): string => `${String(base).padStart(19, '0')}.idx`;
    const durableSteps = fileSystem.calls.filter((call) => !call.startsWith('open'));
    expect(durableSteps).toEqual([
      'syncDirectory t',
      `write ${mmm(0)}`,
      `sync ${mmm(0)}`,
      `write ${idx(0)}`,
      `sync ${idx(0)}`,
      'syncDirectory t',
      `write ${mmm(1)}`,
      `sync ${mmm(1)}`,
      `write ${idx(1)}`,
      `sync ${idx(1)}`,
    ]);
    await engine.close();
  });

  it('goes on where a write or a read was short', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    fileSystem.maxBytesPerCall = 3;
    const { engine } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append([Buffer.from('a message in many pieces'), Buffer.from('another')]);
    expect(await readTexts(topic)).toEqual(['a message in many pieces', 'another']);
    await engine.close();
  });

  it('gives no more than was asked for, and the first message whole however large', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    const topic = await engine.create('t');
    await topic.append([payloadOfEntryBytes(5000), payloadOfEntryBytes(50), payloadOfEntryBytes(50), payloadOfEntryBytes(50)]);
    expect((await topic.read(0, { maxCount: 10, maxBytes: 10 })).map((entry) => entry.payload?.length)).toEqual([4992]);
    expect((await topic.read(1, { maxCount: 2, maxBytes: 1000 })).map((entry) => entry.offset)).toEqual([1, 2]);
    expect((await topic.read(1, { maxCount: 9, maxBytes: 92 })).map((entry) => entry.offset)).toEqual([1, 2]);
    expect(await topic.read(4, { maxCount: 1, maxBytes: 10 })).toEqual([]);
    await engine.close();
  });

  it('knows the longest tail within a count and a number of bytes, across segments', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir, { segmentMaxBytes: 100 });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(Array.from({ length: 10 }, () => payloadOfEntryBytes(50)));
    expect(await topic.tailOffset(3, 10_000)).toBe(7);
    expect(await topic.tailOffset(100, 10_000)).toBe(0);
    expect(await topic.tailOffset(100, 500)).toBe(0);
    expect(await topic.tailOffset(100, 499)).toBe(1);
    expect(await topic.tailOffset(100, 150)).toBe(7);
    expect(await topic.tailOffset(100, 149)).toBe(8);
    expect(await topic.tailOffset(100, 0)).toBe(10);
    await engine.close();
  });

  it('serves many topics through a handful of open files', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir, { maxOpenFiles: 2 });
    await engine.open();
    const topics = await Promise.all(Array.from({ length: 20 }, (_, index) => engine.create(`topic-${index}`)));
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(topics.map((topic) => topic.append([Buffer.from(`${topic.topic} round ${round}`)])));
    }
    for (const topic of topics) {
      expect(await readTexts(topic)).toEqual([0, 1, 2].map((round) => `${topic.topic} round ${round}`));
    }
    await engine.close();
  });
});
