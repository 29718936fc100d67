import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { Clock } from '../core/index.js';
import { NodeFileSystem, type File, type OpenMode } from './file-system/index.js';
import { FaultyFileSystem } from '../../test/support/faulty-file-system.js';
import { fileEngine, readTexts } from '../../test/support/file-engine.js';
import { snapshot, temporaryDirectories } from '../../test/support/temporary-directory.js';
import { until } from '../../test/support/until.js';

const newDirectory = temporaryDirectories();

const texts = (...values: string[]): Buffer[] => values.map((value) => Buffer.from(value));

/** Waits that end when the test says so. */
function steppedClock(): { clock: Clock; waits: number[]; step: () => Promise<void> } {
  const waits: number[] = [];
  const waiting: (() => void)[] = [];
  const newcomers: (() => void)[] = [];
  const clock: Clock = {
    now: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        waits.push(ms);
        waiting.push(resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
        newcomers.shift()?.();
      }),
  };
  const step = async (): Promise<void> => {
    if (waiting.length === 0) await new Promise<void>((resolve) => newcomers.push(resolve));
    waiting.shift()?.();
  };
  return { clock, waits, step };
}

describe('the data directory', () => {
  it('may be a link to a directory, and is refused when the link leads nowhere', async () => {
    const [dir, target] = [await newDirectory(), await newDirectory()];
    await symlink(target, join(dir, 'data'));
    const { engine } = fileEngine(join(dir, 'data'));
    await engine.open();
    await engine.create('t');
    await engine.close();
    expect(await readdir(target)).toContain('t');
    await symlink('/nowhere', join(dir, 'dangling'));
    for (const rootDir of ['dangling', 'dangling/below']) {
      await expect(fileEngine(join(dir, rootDir)).engine.open()).rejects.toThrow(/cannot be used \(.*set mmmq\.broker\.storage\.root-dir/);
    }
    await writeFile(join(dir, 'file'), '');
    await expect(fileEngine(join(dir, 'file')).engine.open()).rejects.toThrow(/file cannot be used \(.*ENOTDIR\): set/);
  });

  it('is made with all that is missing on its way', async () => {
    const rootDir = join(await newDirectory(), 'not/yet/there');
    const { engine } = fileEngine(rootDir);
    expect(await engine.open()).toEqual([]);
    await engine.close();
    expect(await readdir(rootDir)).toEqual(['.mmmq.lock']);
  });

  it('belongs to one broker: a second one in the same process is refused, names the holder and touches nothing', async () => {
    const rootDir = await newDirectory();
    const first = fileEngine(rootDir);
    await first.engine.open();
    const topic = await first.engine.create('t');
    await topic.append(texts('kept'));
    const before = await snapshot(rootDir);
    await expect(fileEngine(rootDir).engine.open()).rejects.toMatchObject({
      code: 'MMMQ_LOCKED',
      message: expect.stringContaining(`in use by another broker in this process (${process.pid}): import BrokerModule once`),
    });
    expect(await snapshot(rootDir)).toEqual(before);
    expect((await topic.append(texts('and goes on'))).offsets).toEqual([1]);
    await first.engine.close();
  });

  it('is free again the moment the process that held it is killed', async () => {
    const rootDir = await newDirectory();
    const script = `
      import { tryLock } from 'fs-native-extensions';
      import { openSync, writeFileSync } from 'node:fs';
      const fd = openSync(${JSON.stringify(join(rootDir, '.mmmq.lock'))}, 'w+');
      if (!tryLock(fd)) process.exit(1);
      writeFileSync(fd, String(process.pid));
      console.log('locked');
      setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(holder.stdout, 'data');
    await expect(fileEngine(rootDir).engine.open()).rejects.toMatchObject({
      code: 'MMMQ_LOCKED',
      message: expect.stringContaining(`process ${holder.pid}`),
    });
    const exited = once(holder, 'exit');
    holder.kill('SIGKILL');
    await exited;
    const { engine } = fileEngine(rootDir);
    await engine.open();
    await engine.close();
  });

  it('makes the name of each directory on the way durable in its parent', async () => {
    const parent = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(join(parent, 'one/two'), { fileSystem });
    await engine.open();
    const made = fileSystem.calls.filter((call) => /^(makeDirectory|syncDirectory)/.test(call));
    const parentName = parent.slice(parent.lastIndexOf('/') + 1);
    expect(made.slice(0, 4)).toEqual(['makeDirectory one', `syncDirectory ${parentName}`, 'makeDirectory two', 'syncDirectory one']);
    await engine.close();
  });

  it('takes no lock on a file whose name is gone', async () => {
    const rootDir = await newDirectory();
    let removals = 1;
    class OneStepAhead extends NodeFileSystem {
      override async open(path: string, mode: OpenMode): Promise<File> {
        const file = await super.open(path, mode);
        // The holder before us takes its file away just now.
        if (path.endsWith('.mmmq.lock') && removals-- > 0) await rm(path);
        return file;
      }
    }
    const { engine } = fileEngine(rootDir, { fileSystem: new OneStepAhead() });
    await engine.open();
    await expect(fileEngine(rootDir).engine.open()).rejects.toMatchObject({ code: 'MMMQ_LOCKED' });
    await engine.close();
  });

  it('is given away only when every file is closed, and all of them are', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    for (const name of ['a', 'b']) {
      const topic = await engine.create(name);
      await topic.append(texts('x'));
      await topic.committed('d');
    }
    await engine.close();
    expect(fileSystem.closed.at(-1)).toBe('.mmmq.lock');
    expect(fileSystem.closed).toHaveLength(fileSystem.calls.filter((call) => call.startsWith('open')).length);
  });

  it('takes nothing from a broker that has closed, so that it cannot disturb the next one', async () => {
    const rootDir = await newDirectory();
    const first = fileEngine(rootDir);
    await first.engine.open();
    const late = await first.engine.create('t');
    await late.append(texts('a', 'b', 'c'));
    await late.committed('d');
    await first.engine.close();
    const second = fileEngine(rootDir);
    const [topic] = await second.engine.open();
    await topic?.commit('d', 3);
    await expect(late.commit('d', 1)).rejects.toMatchObject({ code: 'MMMQ_CLOSED' });
    await expect(late.committed('d')).rejects.toMatchObject({ code: 'MMMQ_CLOSED' });
    await expect(late.read(0, { maxCount: 1, maxBytes: 1 })).rejects.toMatchObject({ code: 'MMMQ_CLOSED' });
    expect(await late.append(texts('d'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_CLOSED' } });
    expect(await topic?.committed('d')).toBe(3);
    await second.engine.close();
  });

  it('is refused when its lock is a link, and what it points at stays as it was', async () => {
    const rootDir = await newDirectory();
    const elsewhere = join(await newDirectory(), 'precious');
    await writeFile(elsewhere, 'precious');
    await symlink(elsewhere, join(rootDir, '.mmmq.lock'));
    await expect(fileEngine(rootDir).engine.open()).rejects.toThrow(/ELOOP/);
    expect(await readFile(elsewhere, 'utf8')).toBe('precious');
  });

  it('leaves alone a topic that is a link, and refuses to make one through it', async () => {
    const rootDir = await newDirectory();
    const elsewhere = await newDirectory();
    await symlink(elsewhere, join(rootDir, 'order.created'));
    const { engine, log } = fileEngine(rootDir);
    expect(await engine.open()).toEqual([]);
    expect(log.join('\n')).toMatch(/order\.created is no topic and is left alone/);
    await expect(engine.create('order.created')).rejects.toMatchObject({ code: 'MMMQ_IO', errno: 'ENOTDIR' });
    expect(await readdir(elsewhere)).toEqual([]);
    await engine.close();
  });

  it('opens also on a full disk, with a rotation half done, and serves what is there', async () => {
    const rootDir = await newDirectory();
    const first = fileEngine(rootDir, { segmentMaxBytes: 1 });
    await first.engine.open();
    await (await first.engine.create('t')).append(texts('a'));
    await first.engine.close();
    await writeFile(join(rootDir, 't/0000000000000000001.mmm'), '');
    const fileSystem = new FaultyFileSystem();
    fileSystem.fail({ operation: 'open', path: /0001\.idx$/, errno: 'ENOSPC', times: 1 });
    const { engine, log } = fileEngine(rootDir, { fileSystem, segmentMaxBytes: 1 });
    const [topic] = await engine.open();
    expect(log.join('\n')).toMatch(/the segment is begun anew when there is room/);
    expect(topic && (await readTexts(topic))).toEqual(['a']);
    expect((await topic?.append(texts('b')))?.offsets).toEqual([1]);
    await engine.close();
    const again = fileEngine(rootDir, { segmentMaxBytes: 1 });
    const [reopened] = await again.engine.open();
    expect(reopened && (await readTexts(reopened))).toEqual(['a', 'b']);
    await again.engine.close();
  });

  it('says that a start which the disk interrupted can be repeated', async () => {
    const rootDir = await newDirectory();
    const first = fileEngine(rootDir);
    await first.engine.open();
    await first.engine.create('t');
    await first.engine.close();
    const fileSystem = new FaultyFileSystem();
    fileSystem.fail({ operation: 'syncDirectory', path: /\/t$/, errno: 'EIO' });
    await expect(fileEngine(rootDir, { fileSystem }).engine.open()).rejects.toThrow(
      /EIO\. The start did not come to its end; it can be repeated/,
    );
  });

  it('shows a topic that could not be made as a problem, until the disk is well', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    const mend = fileSystem.fail({ operation: 'syncDirectory', path: /./, errno: 'EIO' });
    await expect(engine.create('t')).rejects.toMatchObject({ code: 'MMMQ_IO' });
    expect(await engine.problems()).toEqual([{ topic: 't', reason: expect.stringMatching(/^it cannot be made: .*EIO/) }]);
    mend();
    expect(await engine.problems()).toEqual([]);
    fileSystem.fail({ operation: 'makeDirectory', path: /full$/, errno: 'ENOSPC', times: 1 });
    await expect(engine.create('full')).rejects.toMatchObject({ code: 'MMMQ_DISK_FULL' });
    fileSystem.left = { files: 2 };
    expect(await engine.problems()).toHaveLength(1);
    fileSystem.left = { files: 1000 };
    expect(await engine.problems()).toEqual([]);
    await engine.close();
  });

  it('is not held after a refused start, and has no new lock file', async () => {
    const rootDir = await newDirectory();
    await mkdir(join(rootDir, 't'));
    await writeFile(join(rootDir, 't', '0000000000000000000.mmm'), 'no index');
    await expect(fileEngine(rootDir).engine.open()).rejects.toThrow(/its twin/);
    expect(Object.keys(await snapshot(rootDir)).sort()).toEqual(['t/', 't/0000000000000000000.mmm']);
  });

  it('leaves an empty directory alone, which is no topic yet, and makes it one when it is asked for', async () => {
    const rootDir = await newDirectory();
    await mkdir(join(rootDir, 'begun'));
    const { engine } = fileEngine(rootDir);
    expect(await engine.open()).toEqual([]);
    const topic = await engine.create('begun');
    expect((await topic.append(texts('first'))).offsets).toEqual([0]);
    await engine.close();
  });

  it('gives nobody a path outside: what is no topic is refused by its rule', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    for (const name of ['..', '../x', '/etc', 'a/b', 'a\\b', 'a\0b', '%2e%2e', '']) {
      await expect(engine.create(name)).rejects.toMatchObject({ code: 'MMMQ_INVALID_VALUE' });
    }
    await engine.close();
    expect(await readdir(rootDir)).toEqual(['.mmmq.lock']);
  });
});

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

  it('that fails in its second segment keeps what the first one took', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem, segmentMaxBytes: 1 });
    await engine.open();
    const topic = await engine.create('t');
    fileSystem.fail({ operation: 'write', path: /0001\.mmm$/, errno: 'EIO', times: 1 });
    expect(await topic.append(texts('kept', 'lost'))).toMatchObject({ offsets: [0], failure: { code: 'MMMQ_APPEND_FAILED' } });
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
      fileSystem.fail({ operation: 'open', path: new RegExp(`0000\\.${extension}$`), errno: 'EMFILE', times: 1 });
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
    fileSystem.fail({ operation: 'open', path: /0001\.idx$/, errno: 'EMFILE', times: 1 });
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
    const { clock, waits, step } = steppedClock();
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

    await step();
    await step();
    await until(async () => (await engine.problems()).length === 0);
    expect(Math.floor((waits[0] ?? 0) / 1000)).toBe(1);
    expect(Math.floor((waits[1] ?? 0) / 1000)).toBe(2);
    expect(log.join('\n')).toMatch(/topic t takes messages again, from offset 1 on/);
    expect((await topic.append(texts('after'))).offsets).toEqual([1]);
    expect(await readTexts(topic)).toEqual(['before', 'after']);
    await engine.close();
  });

  it('is on the disk also when the segment before it could not be begun durably', async () => {
    const rootDir = await newDirectory();
    const fileSystem = new FaultyFileSystem();
    const { clock, step } = steppedClock();
    const { engine } = fileEngine(rootDir, { fileSystem, clock, segmentMaxBytes: 1 });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('a'));
    fileSystem.fail({ operation: 'syncDirectory', path: /\/t$/, errno: 'EIO', times: 1 });
    expect(await topic.append(texts('b'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_APPEND_FAILED' } });
    expect(await topic.append(texts('refused'))).toMatchObject({ failure: { code: 'MMMQ_TOPIC_REFUSING' } });
    await step();
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
    const { clock, step } = steppedClock();
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
    await step();
    await until(() => log.join('\n').includes('still refuses messages'));
    // The handle that saw the failure is not used again.
    expect(fileSystem.calls.slice(0, 2)).toEqual(['open 0000000000000000000.mmm', 'open 0000000000000000000.idx']);
    expect(await topic.append(texts('d'))).toMatchObject({ failure: { code: 'MMMQ_TOPIC_REFUSING' } });
    await writeFile(path, bytes);
    await step();
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

describe('a checkpoint', () => {
  async function topicOf(count: number, fileSystem = new FaultyFileSystem()) {
    const rootDir = await newDirectory();
    const { engine, log } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    const topic = await engine.create('order.created');
    await topic.append(Array.from({ length: count }, (_, index) => Buffer.from(`m${index}`)));
    const file = (name: string): string => join(rootDir, 'order.created/checkpoints', `${name}.checkpoint`);
    return { rootDir, engine, topic, log, file, fileSystem };
  }

  const asOffset = async (path: string): Promise<bigint> => (await readFile(path)).readBigInt64BE(0);

  it('stands for each dispatcher on its own: 0, 3 and 5 of the same topic', async () => {
    const { rootDir, engine, topic, file } = await topicOf(6);
    for (const [name, offset] of [
      ['audit-dispatcher', 0],
      ['analytics-dispatcher', 3],
      ['billing-dispatcher', 5],
    ] as const) {
      expect(await topic.committed(name)).toBe(0);
      for (let next = 1; next <= offset; next += 1) await topic.commit(name, next);
      expect(await asOffset(file(name))).toBe(BigInt(offset));
    }
    await engine.close();
    const again = fileEngine(rootDir);
    const [reopened] = await again.engine.open();
    expect(await reopened?.committed('audit-dispatcher')).toBe(0);
    expect(await reopened?.committed('analytics-dispatcher')).toBe(3);
    expect(await reopened?.committed('billing-dispatcher')).toBe(5);
    await again.engine.close();
  });

  it('is eight bytes, overwritten in place and synced at each commit', async () => {
    const { engine, topic, file, fileSystem } = await topicOf(3);
    await topic.committed('d');
    fileSystem.calls.length = 0;
    await topic.commit('d', 1);
    await topic.commit('d', 2);
    expect(fileSystem.calls.filter((call) => !call.startsWith('open'))).toEqual(
      Array.from({ length: 2 }, () => ['write d.checkpoint', 'sync d.checkpoint']).flat(),
    );
    expect(await readFile(file('d'))).toHaveLength(8);
    await engine.close();
  });

  it.each([
    ['empty', Buffer.alloc(0)],
    ['short', Buffer.alloc(5)],
    ['long', Buffer.concat([Buffer.alloc(7), Buffer.from([2]), Buffer.alloc(4)])],
    ['negative', Buffer.from('ffffffffffffffff', 'hex')],
  ])('that is %s begins again at 0, with a warning, and is whole afterwards', async (name, bytes) => {
    const { rootDir, engine, topic, file } = await topicOf(3);
    await topic.committed('d');
    await engine.close();
    await writeFile(file('d'), bytes);
    const again = fileEngine(rootDir);
    const [reopened] = await again.engine.open();
    expect(await reopened?.committed('d')).toBe(0);
    expect(again.log.join('\n')).toMatch(/d\.checkpoint does not hold an offset of 8 bytes/);
    expect(await readFile(file('d'))).toEqual(Buffer.alloc(8));
    await reopened?.commit('d', 2);
    await again.engine.close();
    const third = fileEngine(rootDir);
    const [last] = await third.engine.open();
    expect([name, await last?.committed('d')]).toEqual([name, 2]);
    await third.engine.close();
  });

  it('is never shorter than it was while it is put at 0, and each step of that is synced', async () => {
    const { rootDir, engine, topic, file } = await topicOf(3);
    await topic.committed('d');
    await engine.close();
    await writeFile(file('d'), Buffer.alloc(12, 1));
    const fileSystem = new FaultyFileSystem();
    const again = fileEngine(rootDir, { fileSystem });
    const [reopened] = await again.engine.open();
    fileSystem.calls.length = 0;
    await reopened?.committed('d');
    expect(fileSystem.calls.filter((call) => !/^(open|read)/.test(call))).toEqual([
      'write d.checkpoint',
      'sync d.checkpoint',
      'truncate d.checkpoint',
      'sync d.checkpoint',
    ]);
    await again.engine.close();
  });

  it('is durable by name up to the topic, where not even its directory was there', async () => {
    const { rootDir, engine } = await topicOf(1);
    await engine.close();
    await rm(join(rootDir, 'order.created/checkpoints'), { recursive: true });
    const fileSystem = new FaultyFileSystem();
    const again = fileEngine(rootDir, { fileSystem });
    const [reopened] = await again.engine.open();
    fileSystem.calls.length = 0;
    await reopened?.committed('d');
    expect(fileSystem.calls.filter((call) => !/^(open|read)/.test(call))).toEqual([
      'makeDirectory checkpoints',
      'write d.checkpoint',
      'sync d.checkpoint',
      'syncDirectory checkpoints',
      'syncDirectory order.created',
    ]);
    await again.engine.close();
  });

  it('that is a link is not followed', async () => {
    const { engine, topic, file } = await topicOf(1);
    const elsewhere = join(await newDirectory(), 'precious');
    await writeFile(elsewhere, 'precious bytes');
    await symlink(elsewhere, file('d'));
    await expect(topic.committed('d')).rejects.toMatchObject({ code: 'MMMQ_IO', errno: 'ELOOP' });
    expect(await readFile(elsewhere, 'utf8')).toBe('precious bytes');
    await engine.close();
  });

  it('beyond the end is set to the end and synced before anything is served, with a warning', async () => {
    const { rootDir, engine, topic, file } = await topicOf(3);
    await topic.committed('gone-for-now');
    await topic.commit('gone-for-now', 3);
    await engine.close();
    await writeFile(file('gone-for-now'), Buffer.from('0000000000000009', 'hex'));
    const again = fileEngine(rootDir);
    const [reopened] = await again.engine.open();
    expect(await asOffset(file('gone-for-now'))).toBe(3n);
    expect(again.log.join('\n')).toMatch(/it says 9, but the topic ends at 3/);
    // Messages that came while its dispatcher was away are not skipped.
    await reopened?.append(texts('a', 'b', 'c', 'd', 'e', 'f', 'g'));
    expect(await reopened?.committed('gone-for-now')).toBe(3);
    await again.engine.close();
  });

  it('that cannot be made is made when it is asked for again, and its name is durable before it is used', async () => {
    const { engine, topic, fileSystem } = await topicOf(1);
    fileSystem.fail({ operation: 'write', path: /d\.checkpoint$/, errno: 'ENOSPC', times: 1 });
    await expect(topic.committed('d')).rejects.toMatchObject({ code: 'MMMQ_DISK_FULL' });
    fileSystem.fail({ operation: 'syncDirectory', path: /checkpoints$/, errno: 'EIO', times: 1 });
    await expect(topic.committed('d')).rejects.toMatchObject({ code: 'MMMQ_IO' });
    fileSystem.calls.length = 0;
    expect(await topic.committed('d')).toBe(0);
    expect(fileSystem.calls).toContain('syncDirectory checkpoints');
    await engine.close();
  });

  it('whose commit fails keeps the old offset, and the same commit can be repeated', async () => {
    const { engine, topic, file, fileSystem } = await topicOf(2);
    await topic.committed('d');
    fileSystem.fail({ operation: 'write', path: /d\.checkpoint$/, errno: 'EIO', times: 1 });
    await expect(topic.commit('d', 1)).rejects.toMatchObject({ code: 'MMMQ_IO' });
    expect(await asOffset(file('d'))).toBe(0n);
    fileSystem.fail({ operation: 'sync', path: /d\.checkpoint$/, errno: 'EIO', times: 1 });
    await expect(topic.commit('d', 1)).rejects.toMatchObject({ code: 'MMMQ_IO' });
    fileSystem.calls.length = 0;
    await topic.commit('d', 1);
    // The bytes are written again: a sync alone would prove nothing about pages that the kernel dropped.
    expect(fileSystem.calls).toEqual(['open d.checkpoint', 'write d.checkpoint', 'sync d.checkpoint']);
    await engine.close();
  });
});
