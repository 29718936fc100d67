import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FaultyFileSystem } from '../../test/support/faulty-file-system.js';
import { fileEngine, readTexts } from '../../test/support/file-engine.js';
import { ManualClock } from '../../test/support/manual-clock.js';
import { snapshot, temporaryDirectories } from '../../test/support/temporary-directory.js';
import { until } from '../../test/support/until.js';
import type { TopicLog } from '../core/index.js';
import type { FileEngine } from './file-engine.js';

const newDirectory = temporaryDirectories();

const RESERVE_BYTES = 200_000;
const FILE_NAME = '.mmmq.reserve';
const texts = (...values: string[]): Buffer[] => values.map((value) => Buffer.from(value));

interface Opened {
  readonly rootDir: string;
  readonly fileSystem: FaultyFileSystem;
  readonly engine: FileEngine;
  readonly topics: readonly TopicLog[];
  readonly log: string[];
  reserveSize(): Promise<number>;
}

async function opened(rootDir?: string, reserveBytes = RESERVE_BYTES, prepare?: (fileSystem: FaultyFileSystem) => void): Promise<Opened> {
  const dir = rootDir ?? (await newDirectory());
  const fileSystem = new FaultyFileSystem();
  prepare?.(fileSystem);
  const { engine, log } = fileEngine(dir, { fileSystem, reserveBytes });
  const topics = await engine.open();
  return { rootDir: dir, fileSystem, engine, topics, log, reserveSize: async () => (await stat(join(dir, FILE_NAME))).size };
}

/** The next write to a file of this kind finds no room, once; and so it is on the whole disk, until `left` says otherwise. */
function fillDisk(fileSystem: FaultyFileSystem, path: RegExp, times = 1): void {
  fileSystem.left = { bytes: 0 };
  fileSystem.fail({ operation: 'write', path, errno: 'ENOSPC', times });
}

describe('the reserve', () => {
  it('is made at the first start, of bytes that no file system stores in less, and found again at the next', async () => {
    const { rootDir, engine, fileSystem } = await opened();
    const made = await readFile(join(rootDir, FILE_NAME));
    expect(made).toHaveLength(RESERVE_BYTES);
    // Each block of 4 KiB differs from all others.
    const blocks = Array.from({ length: Math.floor(RESERVE_BYTES / 4096) }, (_, index) =>
      made.toString('latin1', index * 4096, index * 4096 + 4096),
    );
    expect(new Set(blocks).size).toBe(blocks.length);
    expect(fileSystem.calls.lastIndexOf(`sync ${FILE_NAME}`)).toBeGreaterThan(fileSystem.calls.lastIndexOf(`write ${FILE_NAME}`));
    await engine.close();

    const next = await opened(rootDir);
    expect(next.fileSystem.calls).not.toContain(`write ${FILE_NAME}`);
    await next.engine.close();
  });

  it.each([1000, 300_000])('takes another size when it is set to %i bytes', async (bytes) => {
    const { rootDir, engine } = await opened();
    await engine.close();
    const next = await opened(rootDir, bytes);
    expect(await next.reserveSize()).toBe(bytes);
    await next.engine.close();
  });

  it('is filled again at a start that finds it short, as a crash in the middle of it leaves it', async () => {
    const { rootDir, engine } = await opened();
    await engine.close();
    await writeFile(join(rootDir, FILE_NAME), 'short');
    const next = await opened(rootDir);
    expect(await next.reserveSize()).toBe(RESERVE_BYTES);
    await next.engine.close();
  });

  it('is none when it is set to 0: the file goes, and nothing is refused for its sake', async () => {
    const { rootDir, engine } = await opened();
    await engine.close();
    const next = await opened(rootDir, 0);
    expect(await readdir(rootDir)).not.toContain(FILE_NAME);
    const topic = await next.engine.create('t');
    fillDisk(next.fileSystem, /\.mmm$/);
    expect((await topic.append(texts('lost'))).failure).toMatchObject({
      code: 'MMMQ_DISK_FULL',
      message: expect.stringContaining('ENOSPC'),
    });
    expect((await topic.append(texts('kept'))).offsets).toEqual([0]);
    await next.engine.close();
  });

  it('is not given to producers', async () => {
    const { engine, fileSystem, reserveSize } = await opened();
    const topic = await engine.create('t');
    fillDisk(fileSystem, /\.mmm$/);
    expect((await topic.append(texts('lost'))).failure).toMatchObject({ code: 'MMMQ_DISK_FULL' });
    expect(await reserveSize()).toBe(RESERVE_BYTES);
    await engine.close();
  });

  it('is given to a dead letter; until there is room for it twice, producers are refused and told why, and dead letters are not', async () => {
    const { engine, fileSystem, reserveSize, log } = await opened();
    const topic = await engine.create('t');
    await topic.append(texts('before'));
    const deadLetters = await engine.create('dlq.d');
    fillDisk(fileSystem, /dlq\.d\/.*\.mmm$/);
    expect(await deadLetters.append(texts('a', 'b'))).toEqual({ offsets: [0, 1] });
    expect(await reserveSize()).toBe(0);
    expect(log).toContainEqual(expect.stringMatching(/^warn: the disk is full: the 200000 bytes of .*reserve are given to dead letters/));

    const refusal = {
      code: 'MMMQ_DISK_FULL',
      message: expect.stringMatching(/is kept for dead letters and checkpoints until 400000 bytes are free$/),
    };
    for (let publish = 0; publish < 2; publish += 1)
      expect(await topic.append(texts('refused'))).toEqual({ offsets: [], failure: expect.objectContaining(refusal) });
    await expect(engine.create('new.topic')).rejects.toMatchObject(refusal);
    expect((await engine.problems()).find((problem) => problem.topic === undefined)).toMatchObject({ reason: refusal.message });
    fileSystem.left = { bytes: 2 * RESERVE_BYTES - 1 };
    expect((await topic.append(texts('refused'))).offsets).toEqual([]);
    expect((await deadLetters.append(texts('c'))).offsets).toEqual([2]);
    expect((await engine.create('dlq.e')).topic).toBe('dlq.e');

    fileSystem.left = { bytes: 2 * RESERVE_BYTES };
    expect((await topic.append(texts('after'))).offsets).toEqual([1]);
    expect(await reserveSize()).toBe(RESERVE_BYTES);
    expect(await readTexts(topic)).toEqual(['before', 'after']);
    expect(await readTexts(deadLetters)).toEqual(['a', 'b', 'c']);
    fileSystem.left = {};
    expect(await engine.problems()).toEqual([]);
    await engine.close();
  });

  it('is given to the part of a pass that found no room, and what was stored before is not stored twice', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem, reserveBytes: RESERVE_BYTES, segmentMaxBytes: 1 });
    await engine.open();
    const deadLetters = await engine.create('dlq.d');
    fillDisk(fileSystem, /0001\.mmm$/);
    expect(await deadLetters.append(texts('a', 'b', 'c'))).toEqual({ offsets: [0, 1, 2] });
    expect(await readTexts(deadLetters)).toEqual(['a', 'b', 'c']);
    await engine.close();
  });

  it('is given to a dead letter whose sync finds no room: its topic is re-opened and takes it', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const clock = new ManualClock();
    const { engine } = fileEngine(rootDir, { fileSystem, clock, reserveBytes: RESERVE_BYTES });
    await engine.open();
    const deadLetters = await engine.create('dlq.d');
    fileSystem.left = { bytes: 0 };
    fileSystem.fail({ operation: 'sync', path: /dlq\.d\/.*\.mmm$/, errno: 'ENOSPC', times: 1 });
    expect(await deadLetters.append(texts('a'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_DISK_FULL' } });
    expect((await stat(join(rootDir, FILE_NAME))).size).toBe(0);
    await until(() => clock.waiting > 0);
    clock.advance(clock.asked.at(-1) ?? 0);
    await until(async () => (await deadLetters.append(texts('a'))).offsets.length > 0);
    expect(await readTexts(deadLetters)).toEqual(['a']);
    await engine.close();
  });

  it('is given to the topic of the first dead letter', async () => {
    const { engine, fileSystem, reserveSize } = await opened();
    fileSystem.left = { bytes: 0 };
    fileSystem.fail({ operation: 'makeDirectory', path: /dlq\.d$/, errno: 'ENOSPC', times: 1 });
    expect((await (await engine.create('dlq.d')).append(texts('a'))).offsets).toEqual([0]);
    expect(await reserveSize()).toBe(0);
    await engine.close();
  });

  it.each([
    ['the first one of a dispatcher', 0],
    ['a later one', 1],
  ])('is given to a checkpoint: %s', async (_which, writesBefore) => {
    const { engine, fileSystem, reserveSize } = await opened();
    const topic = await engine.create('t');
    await topic.append(texts('a', 'b'));
    if (writesBefore > 0) await topic.committed('d');
    fillDisk(fileSystem, /d\.checkpoint$/);
    expect(await topic.committed('d')).toBe(0);
    await topic.commit('d', 1);
    expect(await topic.committed('d')).toBe(1);
    expect(await reserveSize()).toBe(0);
    await engine.close();
  });

  it('is given once to all who need it at the same moment', async () => {
    const { engine, fileSystem } = await opened();
    const topics = await Promise.all(['dlq.a', 'dlq.b', 'dlq.c'].map((topic) => engine.create(topic)));
    fileSystem.calls.length = 0;
    fillDisk(fileSystem, /dlq\..*\.mmm$/, 3);
    const outcomes = await Promise.all(topics.map((topic) => topic.append(texts('a'))));
    expect(outcomes).toEqual([{ offsets: [0] }, { offsets: [0] }, { offsets: [0] }]);
    expect(fileSystem.calls.filter((call) => call === `truncate ${FILE_NAME}`)).toHaveLength(1);
    await engine.close();
  });

  it('is there for one who needed it before it was given, and learns so only after', async () => {
    const { engine, fileSystem } = await opened();
    const [slow, quick] = await Promise.all(['dlq.slow', 'dlq.quick'].map((topic) => engine.create(topic)));
    fillDisk(fileSystem, /dlq\..*\.mmm$/, 2);
    const room = fileSystem.room.bind(fileSystem);
    let isQuickDone = false;
    let asked = 0;
    fileSystem.room = async (path) => {
      asked += 1;
      if (asked === 1) await until(() => isQuickDone);
      return room(path);
    };
    const slowly = slow?.append(texts('a'));
    await until(() => asked === 1);
    expect(await quick?.append(texts('a'))).toEqual({ offsets: [0] });
    isQuickDone = true;
    expect(await slowly).toEqual({ offsets: [0] });
    await engine.close();
  });

  it('that is used up leaves a dead letter waiting: it is refused as any message is, and nothing of it stays', async () => {
    const { rootDir, engine, fileSystem } = await opened();
    const deadLetters = await engine.create('dlq.d');
    await deadLetters.append(texts('a'));
    const before = await snapshot(join(rootDir, 'dlq.d'));
    fillDisk(fileSystem, /dlq\.d\/.*\.mmm$/, 3);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      expect(await deadLetters.append(texts('b'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_DISK_FULL' } });
    }
    expect(await snapshot(join(rootDir, 'dlq.d'))).toEqual(before);
    expect((await deadLetters.append(texts('b'))).offsets).toEqual([1]);
    await engine.close();
  });

  it('that somebody has removed for its room is filled again when there is enough', async () => {
    const { rootDir, engine, fileSystem, reserveSize, log } = await opened();
    const [topic, deadLetters] = [await engine.create('t'), await engine.create('dlq.d')];
    await rm(join(rootDir, FILE_NAME));
    fillDisk(fileSystem, /dlq\.d\/.*\.mmm$/);
    expect((await deadLetters.append(texts('a'))).offsets).toEqual([]);
    expect(log).toContainEqual(expect.stringMatching(/reserve cannot be given: .*ENOENT/));
    fileSystem.left = {};
    expect((await topic.append(texts('a'))).offsets).toEqual([0]);
    expect(await reserveSize()).toBe(RESERVE_BYTES);
    await engine.close();
  });

  it('that cannot be filled after all takes no room, and producers stay refused', async () => {
    const { engine, fileSystem, reserveSize } = await opened();
    const [topic, deadLetters] = [await engine.create('t'), await engine.create('dlq.d')];
    fillDisk(fileSystem, /dlq\.d\/.*\.mmm$/);
    await deadLetters.append(texts('a'));
    fileSystem.left = {};
    for (const errno of ['ENOSPC', 'EIO']) {
      fileSystem.fail({ operation: 'write', path: /\.reserve$/, errno, times: 1, bytesWritten: 100 });
      expect((await topic.append(texts('refused'))).failure).toMatchObject({ code: 'MMMQ_DISK_FULL' });
    }
    expect((await topic.append(texts('taken'))).offsets).toEqual([0]);
    expect(await reserveSize()).toBe(RESERVE_BYTES);
    await engine.close();
  });

  it('keeps nobody from starting on a full disk: what is there is served, and publishes are refused', async () => {
    const rootDir = await newDirectory();
    const first = await opened(rootDir, 0);
    await (await first.engine.create('t')).append(texts('kept'));
    await first.engine.close();
    const { engine, topics, log } = await opened(rootDir, RESERVE_BYTES, (fileSystem) => (fileSystem.left = { bytes: 0 }));
    const topic = topics[0] as TopicLog;
    expect(log).toContainEqual(expect.stringMatching(/^warn: the disk of .* is full: .*; publishes are refused$/));
    expect(await readTexts(topic)).toEqual(['kept']);
    expect((await topic.append(texts('refused'))).failure).toMatchObject({ code: 'MMMQ_DISK_FULL' });
    await engine.close();
  });

  it.each([
    ['a directory has its name', (dir: string) => mkdir(join(dir, FILE_NAME)), 'EISDIR'],
    ['a link has its name', (dir: string) => symlink('/nowhere', join(dir, FILE_NAME)), 'ELOOP'],
    ['its file cannot be written', () => Promise.resolve(), 'EFBIG'],
  ])(
    'is none, with a warning, where %s: that keeps no broker from starting, and nothing is refused for its sake',
    async (_what, put, errno) => {
      const rootDir = await newDirectory();
      await put(rootDir);
      const { engine, log, fileSystem } = await opened(rootDir, RESERVE_BYTES, (disk) => {
        disk.fail({ operation: 'write', path: /\.reserve$/, errno: 'EFBIG', times: 1 });
      });
      expect(log).toContainEqual(expect.stringMatching(new RegExp(`^warn: there is no reserve .*${errno}.*move .*reserve away`)));
      const topic = await engine.create('t');
      fillDisk(fileSystem, /\.mmm$/);
      expect((await topic.append(texts('lost'))).failure).toMatchObject({
        code: 'MMMQ_DISK_FULL',
        message: expect.stringContaining('ENOSPC'),
      });
      expect((await topic.append(texts('kept'))).offsets).toEqual([0]);
      await engine.close();
    },
  );

  it('is kept where it is not bytes that are missing', async () => {
    const { engine, fileSystem, reserveSize } = await opened();
    fileSystem.fail({ operation: 'makeDirectory', path: /dlq\.d$/, errno: 'ENOSPC', times: 1 });
    await expect(engine.create('dlq.d')).rejects.toMatchObject({ code: 'MMMQ_DISK_FULL' });
    expect(await reserveSize()).toBe(RESERVE_BYTES);
    await engine.close();
  });

  it('is given where a quota is used up, which shows in no free space', async () => {
    const { engine, fileSystem, reserveSize } = await opened();
    const deadLetters = await engine.create('dlq.d');
    fileSystem.fail({ operation: 'write', path: /dlq\.d\/.*\.mmm$/, errno: 'EDQUOT', times: 1 });
    expect((await deadLetters.append(texts('a'))).offsets).toEqual([0]);
    expect(await reserveSize()).toBe(0);
    await engine.close();
  });
});
