import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';

import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FaultyFileSystem } from '../../test/support/faulty-file-system.js';
import { fileEngine, readTexts } from '../../test/support/file-engine.js';
import { ManualClock } from '../../test/support/manual-clock.js';
import { snapshot, temporaryDirectories } from '../../test/support/temporary-directory.js';
import { until } from '../../test/support/until.js';
import { NodeFileSystem, type File, type OpenMode } from './file-system/index.js';

const newDirectory = temporaryDirectories();

const texts = (...values: string[]): Buffer[] => values.map((value) => Buffer.from(value));

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

  it.each([
    ['its lock file was removed', (rootDir: string) => rm(join(rootDir, '.mmmq.lock'))],
    ['it was moved', (rootDir: string) => rename(rootDir, `${rootDir}.moved`)],
    [
      'it was moved, and another broker has one in its place',
      async (rootDir: string) => {
        await rename(rootDir, `${rootDir}.moved`);
        const { engine } = fileEngine(rootDir);
        await engine.open();
        return engine;
      },
    ],
  ])('is written no more, within a second, where %s: another broker may have it', async (_what, take) => {
    const rootDir = join(await newDirectory(), 'data');
    const clock = new ManualClock();
    const { engine } = fileEngine(rootDir, { clock });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('kept'));
    await topic.committed('d');
    const other = await take(rootDir);
    clock.advance(1000);
    const refusal = expect.objectContaining({
      code: 'MMMQ_LOCKED',
      message: expect.stringContaining('writes nothing any more; stop both, and start one'),
    });
    expect(await topic.append(texts('refused'))).toEqual({ offsets: [], failure: refusal });
    await expect(topic.commit('d', 1)).rejects.toEqual(refusal);
    await expect(engine.create('u')).rejects.toEqual(refusal);
    expect(await engine.problems()).toEqual([{ reason: expect.stringContaining('was removed, or the directory was moved') }]);
    expect(await readTexts(topic)).toEqual(['kept']);
    await engine.close();
    await other?.close();
  });

  it('is not cut back by a topic that would re-open itself when another broker may have it', async () => {
    const rootDir = await newDirectory();
    const clock = new ManualClock();
    const fileSystem = new FaultyFileSystem();
    const { engine, log } = fileEngine(rootDir, { clock, fileSystem });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('kept'));
    fileSystem.fail({ operation: 'sync', path: /\.mmm$/, errno: 'EIO', times: 1 });
    expect((await topic.append(texts('lost'))).offsets).toEqual([]);
    await rm(join(rootDir, '.mmmq.lock'));
    fileSystem.calls.length = 0;
    await until(() => clock.waiting > 0);
    clock.advance(clock.asked.at(-1) ?? 0);
    await until(() => log.some((line) => line.includes('still refuses messages') && line.includes('writes nothing any more')));
    expect(fileSystem.calls.filter((call) => /^(truncate|write|sync) /.test(call))).toEqual([]);
    await engine.close();
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
    expect(made).toEqual([
      // The name of what is there already may not be durable either.
      `syncDirectory ${basename(dirname(parent))}`,
      'makeDirectory one',
      `syncDirectory ${parentName}`,
      'makeDirectory two',
      'syncDirectory one',
      'syncDirectory two',
    ]);
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
    // Of these two the first open finds no file.
    const isOther = (call: string): boolean => !/\.(reserve|synced)$/.test(call);
    expect(fileSystem.closed.filter(isOther)).toHaveLength(
      fileSystem.calls.filter((call) => call.startsWith('open ') && isOther(call)).length,
    );
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

  it('says why a start was refused, and is not held, also where its new lock file cannot be removed', async () => {
    const rootDir = await newDirectory();
    await mkdir(join(rootDir, 't'));
    await writeFile(join(rootDir, 't', '0000000000000000000.mmm'), 'no index');
    const fileSystem = new FaultyFileSystem();
    fileSystem.fail({ operation: 'remove', path: /lock$/, errno: 'EACCES' });
    for (let start = 0; start < 2; start += 1) await expect(fileEngine(rootDir, { fileSystem }).engine.open()).rejects.toThrow(/its twin/);
  });

  it('is written no more where its lock file was removed, also when the clock was put back', async () => {
    const rootDir = await newDirectory();
    const clock = new ManualClock();
    const { engine } = fileEngine(rootDir, { clock });
    await engine.open();
    const topic = await engine.create('t');
    await topic.append(texts('kept'));
    await rm(join(rootDir, '.mmmq.lock'));
    clock.advance(-3_600_000);
    expect(await topic.append(texts('refused'))).toMatchObject({ offsets: [], failure: { code: 'MMMQ_LOCKED' } });
    await engine.close();
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

  it('has a topic also at the next start that has no message yet', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    await engine.create('t');
    await engine.close();
    const again = fileEngine(rootDir);
    expect((await again.engine.open()).map(({ topic, count }) => ({ topic, count }))).toEqual([{ topic: 't', count: 0 }]);
    await again.engine.close();
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
