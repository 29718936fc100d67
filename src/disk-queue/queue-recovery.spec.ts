import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { diskQueues, recordingLogger, takeAll } from '../../test/support/disk-queue.js';
import { temporaryDirectories } from '../../test/support/temporary-directory.js';
import type { DiskQueue } from './index.js';

const openQueue = diskQueues();
const newDirectory = temporaryDirectories();

/** Records of these messages. */
function records(...messages: readonly string[]): Buffer {
  return Buffer.concat(
    messages.map((text) => {
      const record = Buffer.alloc(4 + text.length);
      record.writeInt32BE(text.length, 0);
      record.write(text, 4);
      return record;
    }),
  );
}

interface Found {
  /** By number. */
  readonly files: readonly (Buffer | undefined)[];
  readonly metadata?: string;
  readonly others?: Readonly<Record<string, string>>;
}

async function open({
  files,
  metadata,
  others = {},
}: Found): Promise<{ queue: DiskQueue; dir: string; log: string[]; names: () => Promise<string[]> }> {
  const dir = await newDirectory();
  await mkdir(dir, { recursive: true });
  for (const [number, bytes] of files.entries())
    if (bytes !== undefined) await writeFile(join(dir, `q.diskqueue.00000${number}.dat`), bytes);
  if (metadata !== undefined) await writeFile(join(dir, 'q.diskqueue.meta.dat'), metadata);
  for (const [name, content] of Object.entries(others)) await writeFile(join(dir, name), content);
  const { logger, log } = recordingLogger();
  const queue = await openQueue({ dir, name: 'q', maxBytesPerFile: 30, logger });
  const names = async (): Promise<string[]> =>
    (await readdir(dir)).filter((name) => name.startsWith('q.') && !name.includes('meta') && !name.includes('tail'));
  return { queue, dir, log, names };
}

/** The next message comes into that file, and everything is given. */
async function expectAll(queue: DiskQueue, dir: string, messages: readonly string[], file: number): Promise<void> {
  expect(queue.depth).toBe(messages.length);
  await queue.put(Buffer.from('the next'));
  expect((await readFile(join(dir, `q.diskqueue.00000${file}.dat`))).toString()).toContain('the next');
  expect(await takeAll(queue)).toEqual([...messages, 'the next']);
  expect(queue.depth).toBe(0);
}

describe('a start of a disk queue', () => {
  it('makes an empty queue where there is nothing', async () => {
    const { queue, dir, log } = await open({ files: [] });
    await expectAll(queue, dir, [], 0);
    expect(log).toEqual([]);
  });

  it('finds what is written where the metadata says that the file ends, and goes on there', async () => {
    const { queue, dir, log } = await open({ files: [records('one', 'two')], metadata: '1\n0,7\n0,14\n' });
    await expectAll(queue, dir, ['two'], 0);
    expect(log).toEqual([]);
  });

  it('makes the file that the metadata names and a crash kept from being made', async () => {
    const { queue, dir } = await open({ files: [records('one', 'two')], metadata: '2\n0,0\n1,0\n' });
    await expectAll(queue, dir, ['one', 'two'], 1);
  });

  it('counts everything as not yet read where there is no metadata', async () => {
    const { queue, dir } = await open({ files: [records('one', 'two'), records('three')] });
    await expectAll(queue, dir, ['one', 'two', 'three'], 2);
  });

  it.each([
    ['is empty', ''],
    ['is cut', '2\n0,0\n'],
    ['is something else', 'nonsense'],
    ['is endless', '2\n0,0\n1,7\n'.padEnd(5000)],
    ['has a reader behind the writer', '1\n3,0\n1,7\n'],
  ])('counts everything as not yet read where the metadata %s, and says so', async (_, metadata) => {
    const { queue, dir, log } = await open({ files: [records('one', 'two'), records('three')], metadata });
    expect(log).toEqual([expect.stringContaining('its metadata says nothing')]);
    await expectAll(queue, dir, ['one', 'two', 'three'], 2);
  });

  it('gives what is written behind the metadata of go-diskqueue, up to what is no message, and sets the file aside', async () => {
    const torn = records('never whole').subarray(0, 9);
    const { queue, dir, names } = await open({ files: [Buffer.concat([records('one', 'two'), torn])], metadata: '1\n0,0\n0,7\n' });
    await expectAll(queue, dir, ['one', 'two'], 1);
    await queue.close();
    expect(await names()).toEqual(['q.diskqueue.000000.dat.bad', 'q.diskqueue.000001.dat']);
  });

  it('cuts away what is behind its own metadata and not proven, and needs no new file', async () => {
    const files = [Buffer.concat([records('one'), records('unproven')])];
    const { queue, dir, log } = await open({ files, metadata: '1\n0,0\n0,7\n', others: { 'q.diskqueue.tail': '' } });
    expect(log).toEqual([expect.stringContaining('12 bytes that a crash left')]);
    expect((await readFile(join(dir, 'q.diskqueue.000000.dat'))).length).toBe(7);
    await expectAll(queue, dir, ['one'], 0);
  });

  it('gives what there is where a file is shorter than the metadata says, and writes to a new one', async () => {
    const { queue, dir } = await open({ files: [records('one', 'two')], metadata: '3\n0,0\n0,23\n' });
    await expectAll(queue, dir, ['one', 'two'], 1);
  });

  it.each([
    ['the file that is read', [undefined, records('three'), records('four')], '4\n0,7\n2,8\n', ['three', 'four']],
    ['one in between', [records('one', 'two'), undefined, records('four')], '4\n0,7\n2,8\n', ['two', 'four']],
    ['the file that is written to', [records('one', 'two'), records('three')], '4\n0,7\n2,8\n', ['two', 'three']],
    ['the only one', [], '2\n0,0\n0,14\n', []],
  ])('goes on with the next where %s is missing, and counts', async (_, files, metadata, left) => {
    const { queue, log } = await open({ files, metadata });
    expect(log).toEqual([expect.stringContaining('its metadata speaks of')]);
    expect(queue.depth).toBe(left.length);
    await queue.put(Buffer.from('the next'));
    expect(await takeAll(queue)).toEqual([...left, 'the next']);
    expect(queue.depth).toBe(0);
  });

  it('gives what is in files behind the one that is written to', async () => {
    const { queue, dir } = await open({ files: [records('one'), records('two')], metadata: '1\n0,0\n0,7\n' });
    await expectAll(queue, dir, ['one', 'two'], 2);
  });

  it('removes files that were read to their end, and the metadata that go-diskqueue did not come to rename', async () => {
    const others = { 'q.diskqueue.meta.dat.123.tmp': '0\n', 'q.diskqueue.meta.dat.more.tmp': 'of somebody else' };
    const { queue, dir, names } = await open({ files: [records('read'), records('one')], metadata: '1\n1,0\n1,7\n', others });
    expect(await names()).toEqual(['q.diskqueue.000001.dat']);
    expect((await readdir(dir)).filter((name) => name.endsWith('.tmp'))).toEqual(['q.diskqueue.meta.dat.more.tmp']);
    await expectAll(queue, dir, ['one'], 1);
  });

  it.each([
    ['below zero', '-2\n0,0\n0,14\n'],
    ['zero, and there are messages', '0\n0,0\n0,14\n'],
  ])('counts where the depth is %s', async (_, metadata) => {
    const { queue, dir } = await open({ files: [records('one', 'two')], metadata });
    await expectAll(queue, dir, ['one', 'two'], 0);
  });

  it('counts nothing where the depth of go-diskqueue did not come back to zero', async () => {
    const { queue, dir } = await open({ files: [records('one', 'two')], metadata: '376793\n0,14\n0,14\n' });
    await expectAll(queue, dir, [], 0);
  });

  it('corrects a depth that nobody could know to be wrong at the end', async () => {
    for (const [depth, hint] of [
      [5, 'was 3 at the end'],
      [1, 'was -1 at the end'],
    ] as const) {
      const { queue, log } = await open({ files: [records('one', 'two')], metadata: `${depth}\n0,0\n0,14\n` });
      expect(await takeAll(queue)).toEqual(['one', 'two']);
      expect(queue.depth).toBe(0);
      expect(log).toEqual([expect.stringContaining(hint)]);
    }
  });

  it('never writes to a number that was set aside', async () => {
    const { queue, dir } = await open({ files: [], others: { 'q.diskqueue.000006.dat.bad': 'x' } });
    await expectAll(queue, dir, [], 7);
  });

  it('leaves what is not its own alone', async () => {
    const others = {
      'q.diskqueue.1.dat': 'x',
      'q.diskqueue.000001.dat.bak': 'x',
      'p.diskqueue.000003.dat': 'x',
      'q.diskqueue.0000001.dat': 'x',
    };
    const { queue, dir } = await open({ files: [records('one')], others });
    await expectAll(queue, dir, ['one'], 1);
    expect(await readdir(dir)).toEqual(expect.arrayContaining(Object.keys(others)));
  });
});
