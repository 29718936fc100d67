import { appendFile, cp, mkdir, open, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FaultyFileSystem } from '../../../test/support/faulty-file-system.js';
import { fileEngine, readTexts } from '../../../test/support/file-engine.js';
import { temporaryDirectories } from '../../../test/support/temporary-directory.js';
import { until } from '../../../test/support/until.js';
import type { Stamp } from '../file-system/index.js';
import { NodeFileSystem } from '../file-system/index.js';

const newDirectory = temporaryDirectories();
const SEGMENT = '0000000000000000000.mmm';
const INDEX = '0000000000000000000.idx';

/** Whether this system tells stamps at all. */
const hasStamps = (await new NodeFileSystem().stamp(import.meta.dirname)) !== undefined;
const describeStamped = hasStamps ? describe : describe.skip;

class CountingFileSystem extends FaultyFileSystem {
  /** Syncs of files and directories, by their place below the data directory, sorted. */
  readonly syncs: string[] = [];

  constructor(
    private readonly rootDir: string,
    private readonly boot = '',
  ) {
    super();
  }

  override async open(...[path, mode]: Parameters<FaultyFileSystem['open']>): ReturnType<FaultyFileSystem['open']> {
    const file = await super.open(path, mode);
    return {
      ...file,
      sync: () => {
        this.note(path);
        return file.sync();
      },
    };
  }

  override syncDirectory(path: string): Promise<void> {
    this.note(path);
    return super.syncDirectory(path);
  }

  override async stamp(path: string): Promise<Stamp | undefined> {
    const stamp = await super.stamp(path);
    return stamp === undefined ? undefined : { ...stamp, text: this.boot + stamp.text };
  }

  private note(path: string): void {
    if (!path.startsWith(`${this.rootDir}/`)) return;
    this.syncs.push(path.slice(this.rootDir.length + 1));
    this.syncs.sort();
  }
}

/** A data directory with two topics of one message each, whose broker ended in good order. */
async function dataDirectory(): Promise<string> {
  const rootDir = await newDirectory();
  const { engine } = fileEngine(rootDir);
  await engine.open();
  for (const topic of ['a', 'b']) await (await engine.create(topic)).append([Buffer.from('message')]);
  await engine.close();
  return rootDir;
}

/** Starts and stops a broker. @returns what the start synced below the data directory */
async function syncsOfStart(rootDir: string, boot = ''): Promise<string[]> {
  const fileSystem = new CountingFileSystem(rootDir, boot);
  const { engine } = fileEngine(rootDir, { fileSystem });
  const topics = await engine.open();
  const { syncs } = fileSystem;
  const found = [...syncs];
  for (const topic of topics) expect(await readTexts(topic)).toEqual(['message']);
  await engine.close();
  return found;
}

const all = (topic: string): string[] => [topic, `${topic}/${SEGMENT}`, `${topic}/${INDEX}`, `${topic}/checkpoints`].sort();
const BOTH = [...all('a'), ...all('b')];

async function overwrite(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(bytes, 0, bytes.length, 0);
  await file.close();
}

/** Puts a copy back over the file that is there: the same bytes in the same inode, with the times that it had. */
async function restoreInPlace(path: string): Promise<void> {
  const { atime, mtime } = await stat(path);
  await overwrite(path, await readFile(path));
  await utimes(path, atime, mtime);
}

describeStamped('what a start syncs', () => {
  it('is nothing of a topic that nobody has changed since the last broker, which ended in good order, or since the last start', async () => {
    const rootDir = await dataDirectory();
    expect(await syncsOfStart(rootDir)).toEqual([]);
    expect(await syncsOfStart(rootDir)).toEqual([]);
    await rm(join(rootDir, '.mmmq.synced'));
    expect(await syncsOfStart(rootDir)).toEqual(BOTH);
    expect(await syncsOfStart(rootDir)).toEqual([]);
  });

  it('is all of them in a copy of the directory, with all its times, also when the copy comes to the old place', async () => {
    const rootDir = await dataDirectory();
    const copy = `${rootDir}.copy`;
    try {
      await cp(rootDir, copy, { recursive: true, preserveTimestamps: true });
      expect(await syncsOfStart(copy)).toEqual(BOTH);
      await cp(copy, `${copy}.2`, { recursive: true, preserveTimestamps: true });
      await rm(rootDir, { recursive: true });
      await rename(`${copy}.2`, rootDir);
      expect(await syncsOfStart(rootDir)).toEqual(BOTH);
    } finally {
      await rm(copy, { recursive: true });
    }
  });

  it.each([SEGMENT, INDEX])(
    'is the last segment of a topic where a copy was put back over its %s, and its names where one was replaced',
    async (name) => {
      const rootDir = await dataDirectory();
      await restoreInPlace(join(rootDir, 'a', name));
      expect(await syncsOfStart(rootDir)).toEqual([`a/${INDEX}`, `a/${SEGMENT}`]);
      await cp(join(rootDir, 'a', name), join(rootDir, 'a', 'copy'), { preserveTimestamps: true });
      await rename(join(rootDir, 'a', 'copy'), join(rootDir, 'a', name));
      expect(await syncsOfStart(rootDir)).toEqual(all('a'));
    },
  );

  it.each([
    ['a file of the topic', 'a/notes.txt', ['a', 'a/checkpoints']],
    ['a checkpoint', 'b/checkpoints/d.checkpoint', ['b', 'b/checkpoints']],
  ])('is the names of a topic where %s was added', async (_what, path, syncs) => {
    const rootDir = await dataDirectory();
    await writeFile(join(rootDir, path), '');
    expect(await syncsOfStart(rootDir)).toEqual(syncs);
  });

  it('is all of them when the machine was restarted', async () => {
    const rootDir = await dataDirectory();
    expect(await syncsOfStart(rootDir, 'another boot ')).toEqual(BOTH);
    expect(await syncsOfStart(rootDir, 'another boot ')).toEqual([]);
    expect(await syncsOfStart(rootDir)).toEqual(BOTH);
  });

  it('is what an append changed that the broker was killed behind, or that failed', async () => {
    const rootDir = await dataDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem });
    const [a] = await engine.open();
    const before = await readFile(join(rootDir, '.mmmq.synced'));
    fileSystem.fail({ operation: 'sync', path: /\.idx$/, errno: 'EIO' });
    expect((await a?.append([Buffer.from('lost')]))?.offsets).toEqual([]);
    expect(await readFile(join(rootDir, '.mmmq.synced'))).toEqual(before);
    await engine.close();
    expect(await readFile(join(rootDir, '.mmmq.synced'))).toEqual(before);
    const again = new CountingFileSystem(rootDir);
    const next = fileEngine(rootDir, { fileSystem: again });
    await next.engine.open();
    expect(again.syncs).toEqual([`a/${INDEX}`, `a/${SEGMENT}`]);
    expect(again.calls).toContain(`write ${INDEX}`);
    await next.engine.close();
  });

  it('is what a start could not write again on a full disk, until a later one could', async () => {
    const rootDir = await dataDirectory();
    await rm(join(rootDir, '.mmmq.synced'));
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem });
    fileSystem.fail({ operation: 'write', path: /a\/.*\.idx$/, errno: 'ENOSPC' });
    expect((await engine.open()).map(({ count }) => count)).toEqual([1, 1]);
    await engine.close();
    expect(await syncsOfStart(rootDir)).toEqual(all('a'));
    expect(await syncsOfStart(rootDir)).toEqual([]);
  });

  it.each([
    ['is torn', (text: string) => text.slice(0, -5), [`b/${INDEX}`, `b/${SEGMENT}`]],
    ['holds noise', (text: string) => text.replace(/^a /, 'a x'), ['a', 'a/checkpoints']],
    ['has a line of another topic', (text: string) => text.replace(/^a /, 'c '), all('a')],
    ['is empty', () => '', BOTH],
  ])('is what the file does not prove where it %s', async (_what, damage, syncs) => {
    const rootDir = await dataDirectory();
    const path = join(rootDir, '.mmmq.synced');
    await writeFile(path, damage(await readFile(path, 'latin1')));
    expect(await syncsOfStart(rootDir)).toEqual(syncs);
    expect(await syncsOfStart(rootDir)).toEqual([]);
  });

  it('is everything, with a warning, where something else is in the place of the file', async () => {
    const rootDir = await dataDirectory();
    await rm(join(rootDir, '.mmmq.synced'));
    await mkdir(join(rootDir, '.mmmq.synced'));
    expect(await syncsOfStart(rootDir)).toEqual(BOTH);
    const { engine, log } = fileEngine(rootDir);
    await engine.open();
    expect(log.join('\n')).toMatch(/warn: .*\.mmmq\.synced: EISDIR: the next start syncs every topic, and takes longer/);
    await engine.close();
  });

  it('is a topic whose last change a further one could hide behind when the broker ended, as both have the same time', async () => {
    const rootDir = await newDirectory();
    class CoarseFileSystem extends FaultyFileSystem {
      override async stamp(path: string): Promise<Stamp | undefined> {
        const stamp = await super.stamp(path);
        return stamp && path.includes('/a') ? { ...stamp, settlesInMs: 20 } : stamp;
      }
    }
    const { engine } = fileEngine(rootDir, { fileSystem: new CoarseFileSystem() });
    await engine.open();
    for (const topic of ['a', 'b']) await (await engine.create(topic)).append([Buffer.from('message')]);
    await engine.close();
    expect(await syncsOfStart(rootDir)).toEqual(all('a'));
  });

  it('is not even looked into where nobody has changed it; the names are', async () => {
    const rootDir = await dataDirectory();
    const fileSystem = new FaultyFileSystem();
    const { engine } = fileEngine(rootDir, { fileSystem });
    const topics = await engine.open();
    expect(fileSystem.calls.filter((call) => /\.(mmm|idx)$/.test(call))).toEqual([]);
    for (const topic of topics) expect((await topic.append([Buffer.from('next')])).offsets).toEqual([1]);
    await engine.close();
    await writeFile(join(rootDir, 'a', '0000000000000000007.mmm'), 'more');
    await expect(fileEngine(rootDir).engine.open()).rejects.toThrow(/offsets do not join/);
  });

  it('is a segment to which somebody else wrote beside the broker, and it is looked into', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    await (await engine.create('a')).append([Buffer.from('message')]);
    await appendFile(join(rootDir, 'a', SEGMENT), 'more');
    await engine.close();
    const next = fileEngine(rootDir);
    await next.engine.open();
    expect(next.log.join('\n')).toMatch(/4 bytes at the end are in no offset index/);
    await next.engine.close();
  });

  it('loses the lines of topics that are gone', async () => {
    const rootDir = await dataDirectory();
    await rm(join(rootDir, 'a'), { recursive: true });
    expect(await syncsOfStart(rootDir)).toEqual([]);
    await writeFile(join(rootDir, 'b', 'notes.txt'), '');
    await syncsOfStart(rootDir);
    expect(await readFile(join(rootDir, '.mmmq.synced'), 'latin1')).toMatch(/^b \S{27} \S{27}\n$/);
  });
});

describeStamped('a stamp', () => {
  const fileSystem = new NodeFileSystem();

  it('is another one after every change behind the moment at which it has settled', async () => {
    const dir = await newDirectory();
    const path = join(dir, 'file');
    await writeFile(path, 'x');
    for (let change = 0; change < 20; change += 1) {
      await until(async () => (await fileSystem.stamp(path))?.settlesInMs === 0);
      const before = await fileSystem.stamp(path);
      await overwrite(path, Buffer.from('x'));
      expect((await fileSystem.stamp(path))?.text).not.toBe(before?.text);
    }
    expect((await fileSystem.stamp(path))?.settlesInMs).toBeGreaterThan(0);
  });

  it('is another one when the machine is started again', async () => {
    const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim();
    expect((await fileSystem.stamp(await newDirectory()))?.text).toMatch(new RegExp(`^${boot} `));
  });

  it('is another one for the directory when a name in it changes, and none for what is not there', async () => {
    const dir = await newDirectory();
    await until(async () => (await fileSystem.stamp(dir))?.settlesInMs === 0);
    const before = await fileSystem.stamp(dir);
    expect(await fileSystem.stamp(dir)).toEqual(before);
    await writeFile(join(dir, 'file'), '');
    expect((await fileSystem.stamp(dir))?.text).not.toBe(before?.text);
    await expect(fileSystem.stamp(join(dir, basename(dirname(dir)), 'nothing'))).rejects.toMatchObject({ errno: 'ENOENT' });
  });
});
