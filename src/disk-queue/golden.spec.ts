import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { diskQueues, recordingLogger, takeAll, texts } from '../../test/support/disk-queue.js';
import { snapshot, temporaryDirectories } from '../../test/support/temporary-directory.js';
const GOLDEN = join(import.meta.dirname, '../../test/golden/diskqueue');
const KIB = 1024;

const openQueue = diskQueues();
const newDirectory = temporaryDirectories();

/** A copy of a directory that go-diskqueue has written. */
async function copyOf(name: string): Promise<string> {
  const dir = join(await newDirectory(), name);
  await cp(join(GOLDEN, name), dir, { recursive: true });
  return dir;
}

/** The files of a queue that is closed, without the lock that nobody holds. */
async function filesOf(dir: string): Promise<Record<string, string>> {
  const files = await snapshot(dir);
  delete files['.mmmq.lock'];
  return files;
}

describe('a directory that go-diskqueue has written', () => {
  it('is left as it was, byte for byte, where nothing was put or taken', async () => {
    for (const [directory, name] of [
      ['rolled-and-partly-read', 'orders'],
      ['one-file', 'one'],
    ] as const) {
      const dir = await copyOf(directory);
      const queue = await openQueue({ dir, name, maxBytesPerFile: KIB });
      expect(await queue.peek()).toBeDefined();
      await queue.close();
      expect(await filesOf(dir)).toEqual(await snapshot(join(GOLDEN, directory)));
    }
  });

  it('goes on where its reader was, over all its files', async () => {
    const dir = await copyOf('rolled-and-partly-read');
    const { logger, log } = recordingLogger();
    const queue = await openQueue({ dir, name: 'orders', maxBytesPerFile: KIB, logger });
    expect(queue.depth).toBe(38);
    expect(await takeAll(queue)).toEqual(texts('orders', 12, 49));
    expect(queue.depth).toBe(0);
    await queue.close();
    expect(log).toEqual([]);
    expect(Object.keys(await filesOf(dir))).toEqual(['orders.diskqueue.000003.dat', 'orders.diskqueue.meta.dat']);
    expect(await readFile(join(dir, 'orders.diskqueue.meta.dat'), 'utf8')).toBe('0\n3,128\n3,128\n');
  });

  it('gives what was written behind its last metadata too, counts it at once, and is written on in a new file', async () => {
    const dir = await copyOf('after-a-crash');
    const queue = await openQueue({ dir, name: 'crashed', maxBytesPerFile: KIB });
    expect(queue.depth).toBe(50);
    await queue.put(Buffer.from('the next one'));
    expect(await readFile(join(dir, 'crashed.diskqueue.000004.dat'))).toEqual(Buffer.from('\0\0\0\x0cthe next one'));
    expect(await takeAll(queue)).toEqual([...texts('crashed', 0, 49), 'the next one']);
    expect(queue.depth).toBe(0);
  });

  it('gives its messages with files of another size', async () => {
    const dir = await copyOf('one-file');
    const queue = await openQueue({ dir, name: 'one', maxBytesPerFile: 128 });
    expect(queue.depth).toBe(5);
    expect(await takeAll(queue)).toEqual(texts('one', 0, 4));
    expect(queue.depth).toBe(0);
  });

  it('loses what is behind a corrupt length in its file, keeps that file, and knows at once how many are left', async () => {
    const dir = await copyOf('corrupt-record');
    const { logger, log } = recordingLogger();
    const queue = await openQueue({ dir, name: 'bad', maxBytesPerFile: KIB, logger });
    expect(queue.depth).toBe(60);
    for (const text of texts('bad', 0, 17)) expect((await queue.take())?.toString()).toBe(text);
    expect((await queue.peek())?.toString()).toBe(texts('bad', 32, 32)[0]);
    expect(queue.depth).toBe(28);
    expect(await takeAll(queue)).toEqual(texts('bad', 32, 59));
    expect(queue.depth).toBe(0);
    await queue.close();
    expect(await readdir(dir)).toContain('bad.diskqueue.000001.dat.bad');
    expect((await readFile(join(dir, 'bad.diskqueue.000001.dat.bad'))).readInt32BE(128)).toBe(-1);
    expect(log).toEqual([
      expect.stringMatching(/^error: .*000001\.dat cannot be read on from position 128: a message of -1 bytes.* 14 messages/),
    ]);
  });
});

describe('a directory that this writes', () => {
  it('has the bytes that go-diskqueue writes, in one file', async () => {
    const dir = await newDirectory();
    const queue = await openQueue({ dir, name: 'one', maxBytesPerFile: KIB * KIB });
    for (const text of texts('one', 0, 4)) await queue.put(Buffer.from(text));
    await queue.close();
    expect(await filesOf(dir)).toEqual(await snapshot(join(GOLDEN, 'one-file')));
  });

  it.each([
    ['one after the other', 1],
    ['together', 50],
  ])('has the bytes that go-diskqueue writes, over several files, partly read, put %s', async (_, atOnce) => {
    const dir = await newDirectory();
    const queue = await openQueue({ dir, name: 'orders', maxBytesPerFile: KIB });
    for (let first = 0; first < 50; first += atOnce)
      await Promise.all(texts('orders', first, first + atOnce - 1).map((text) => queue.put(Buffer.from(text))));
    for (const text of texts('orders', 0, 11)) expect((await queue.take())?.toString()).toBe(text);
    await queue.close();
    expect(await filesOf(dir)).toEqual(await snapshot(join(GOLDEN, 'rolled-and-partly-read')));
  });
});
