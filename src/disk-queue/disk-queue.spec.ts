import { appendFile, readdir, readFile, rm, truncate } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { diskQueues, recordingLogger, takeAll, texts } from '../../test/support/disk-queue.js';
import { FaultyFileSystem } from '../../test/support/faulty-file-system.js';
import { Gate } from '../../test/support/gate.js';
import { temporaryDirectories } from '../../test/support/temporary-directory.js';
import { until } from '../../test/support/until.js';
import { DiskQueue, DiskQueueClosedError, MessageSizeRefusedError, type DiskQueueOptions } from './index.js';

const RECORD_BYTES = 64;

const openQueue = diskQueues();
const newDirectory = temporaryDirectories();

async function newQueue(options: Partial<DiskQueueOptions> = {}): Promise<DiskQueue & { readonly dir: string }> {
  const dir = options.dir ?? (await newDirectory());
  return Object.assign(await openQueue({ name: 'orders', ...options, dir }), { dir });
}

function putAll(queue: DiskQueue, messages: readonly string[]): Promise<unknown> {
  return Promise.all(messages.map((text) => queue.put(Buffer.from(text))));
}

async function take(queue: DiskQueue, count: number): Promise<string[]> {
  const taken: string[] = [];
  for (let index = 0; index < count; index += 1) taken.push(String(await queue.take()));
  return taken;
}

function metadataIn(dir: string): Promise<string> {
  return readFile(join(dir, 'orders.diskqueue.meta.dat'), 'utf8').catch(() => 'none');
}

async function dataFilesIn(dir: string): Promise<string[]> {
  return (await readdir(dir)).filter((name) => name.includes('.dat') && !name.includes('meta'));
}

const dataFile = (dir: string, number: number): string => join(dir, `orders.diskqueue.00000${number}.dat`);

describe('a disk queue', () => {
  it('gives what was put, and counts it', async () => {
    const queue = await newQueue();
    expect(queue.depth).toBe(0);
    expect(await queue.take()).toBeUndefined();
    await queue.put(Buffer.from('test'));
    expect(queue.depth).toBe(1);
    expect((await queue.peek())?.toString()).toBe('test');
    expect(queue.depth).toBe(1);
    expect((await queue.take())?.toString()).toBe('test');
    expect(queue.depth).toBe(0);
    expect(await queue.peek()).toBeUndefined();
  });

  it('begins a new file where the next message does not fit, and says so first: data, metadata, file', async () => {
    const fileSystem = new FaultyFileSystem();
    const queue = await newQueue({ maxBytesPerFile: 10 * RECORD_BYTES, fileSystem });
    const messages = texts('orders', 0, 10);
    for (const [index, text] of messages.entries()) {
      if (index === 10) fileSystem.calls.splice(0);
      await queue.put(Buffer.from(text));
      expect(queue.depth).toBe(index + 1);
    }
    const changes = fileSystem.calls.filter((call) => !/^(read|list)/.test(call)).map((call) => call.replace('orders.diskqueue.', ''));
    expect(changes).toEqual([
      'sync 000000.dat',
      'open meta.dat.tmp',
      'truncate meta.dat.tmp',
      'write meta.dat.tmp',
      'sync meta.dat.tmp',
      'rename meta.dat.tmp',
      `syncDirectory ${basename(queue.dir)}`,
      'open 000001.dat',
      'write 000001.dat',
      'write tail',
    ]);
    expect((await readFile(dataFile(queue.dir, 0))).length).toBe(10 * RECORD_BYTES);
    expect((await readFile(dataFile(queue.dir, 1))).length).toBe(RECORD_BYTES);
    for (const [index, text] of messages.entries()) {
      expect((await queue.take())?.toString()).toBe(text);
      expect(queue.depth).toBe(10 - index);
    }
  });

  it('removes a file that was read to its end, as soon as the metadata has left it', async () => {
    const queue = await newQueue({ maxBytesPerFile: 4 * RECORD_BYTES });
    await putAll(queue, texts('orders', 0, 11));
    await take(queue, 3);
    expect(await dataFilesIn(queue.dir)).toHaveLength(3);
    await take(queue, 1);
    await until(async () => (await dataFilesIn(queue.dir)).length === 2);
    expect(await metadataIn(queue.dir)).toBe('8\n1,0\n2,256\n');
  });

  it('has nothing of the sort to remove where reader and writer meet at the end of a file', async () => {
    const { logger, log } = recordingLogger();
    const queue = await newQueue({ maxBytesPerFile: 2 * RECORD_BYTES + 10, logger });
    for (const text of texts('orders', 0, 19)) {
      await queue.put(Buffer.from(text));
      expect(await take(queue, 1)).toEqual([text]);
    }
    await until(async () => (await dataFilesIn(queue.dir)).length === 1);
    await queue.close();
    expect(await dataFilesIn(queue.dir)).toEqual(['orders.diskqueue.000009.dat']);
    expect(log).toEqual([]);
  });

  it('gives a message that is larger than a file a file of its own', async () => {
    const queue = await newQueue({ maxBytesPerFile: 100 });
    const messages = ['small', 'x'.repeat(300), 'small again', 'y'.repeat(300_000)];
    await putAll(queue, messages);
    expect(await dataFilesIn(queue.dir)).toHaveLength(4);
    expect(await takeAll(queue)).toEqual(messages);
  });

  it('can be emptied, without a file left, and used on', async () => {
    const queue = await newQueue({ maxBytesPerFile: 2 * RECORD_BYTES });
    await putAll(queue, texts('orders', 0, 99));
    await take(queue, 3);
    expect(queue.depth).toBe(97);
    await queue.empty();
    expect(queue.depth).toBe(0);
    expect(await queue.take()).toBeUndefined();
    expect(await dataFilesIn(queue.dir)).toEqual([]);
    expect(await metadataIn(queue.dir)).toBe('none');
    await putAll(queue, texts('orders', 100, 199));
    expect(queue.depth).toBe(100);
    expect(await takeAll(queue)).toEqual(texts('orders', 100, 199));
    expect(queue.depth).toBe(0);
    await queue.close();
    const [read, write] = (await metadataIn(queue.dir)).split('\n').slice(1);
    expect(read).toBe(write);
  });

  it('goes on with files of another size, without one that counts as bad', async () => {
    const dir = await newDirectory();
    const first = await newQueue({ dir, maxBytesPerFile: 8 * RECORD_BYTES });
    await putAll(first, texts('orders', 0, 8));
    await first.close();
    expect(await metadataIn(dir)).toBe('9\n0,0\n1,64\n');
    const second = await newQueue({ dir, maxBytesPerFile: 10 * RECORD_BYTES });
    await putAll(second, texts('orders', 9, 18));
    expect(second.depth).toBe(19);
    expect((await readFile(dataFile(dir, 2))).length).toBe(RECORD_BYTES);
    expect(await takeAll(second)).toEqual(texts('orders', 0, 18));
    await second.close();
    expect(await dataFilesIn(dir)).toEqual(['orders.diskqueue.000002.dat']);
  });

  it('writes the metadata when its time has come, after puts and after takes', async () => {
    const queue = await newQueue({ syncTimeoutMs: 20 });
    const message = Buffer.alloc(1000, 'x');
    await queue.put(message);
    await until(async () => (await metadataIn(queue.dir)) === '1\n0,0\n0,1004\n');
    await queue.put(message);
    await queue.take();
    await until(async () => (await metadataIn(queue.dir)) === '1\n0,1004\n0,2008\n');
  });

  it('writes the metadata at every so many puts and takes', async () => {
    const queue = await newQueue({ syncEvery: 4, syncTimeoutMs: 3_600_000 });
    await putAll(queue, texts('orders', 0, 2));
    expect(await metadataIn(queue.dir)).toBe('0\n0,0\n0,0\n');
    await take(queue, 1);
    await until(async () => (await metadataIn(queue.dir)) === '2\n0,64\n0,192\n');
    // Those that are written together are synced together.
    await putAll(queue, texts('orders', 3, 9));
    expect(await metadataIn(queue.dir)).toBe('9\n0,64\n0,640\n');
    // Behind four takes the next one waits for the sync.
    await take(queue, 5);
    expect(await metadataIn(queue.dir)).toBe('5\n0,320\n0,640\n');
  });

  it('loses nothing and gives nothing twice, with several producers, a close in the middle, and several takers', async () => {
    const dir = await newDirectory();
    const first = await newQueue({ dir, maxBytesPerFile: 4096 });
    const acknowledged: string[] = [];
    const produce = async (producer: number): Promise<void> => {
      for (let number = 0; ; number += 1) {
        const text = `producer ${producer}, message ${number}`;
        try {
          await first.put(Buffer.from(text));
        } catch (error) {
          expect(error).toBeInstanceOf(DiskQueueClosedError);
          return;
        }
        acknowledged.push(text);
      }
    };
    const producers = [0, 1, 2, 3].map(produce);
    await until(() => acknowledged.length > 2000);
    await first.close();
    await Promise.all(producers);

    const second = await newQueue({ dir, maxBytesPerFile: 4096 });
    expect(second.depth).toBe(acknowledged.length);
    const taken: string[] = [];
    const consume = async (): Promise<void> => {
      for (let bytes = await second.take(); bytes !== undefined; bytes = await second.take()) taken.push(bytes.toString());
    };
    await Promise.all([0, 1, 2, 3].map(consume));
    expect(taken.toSorted()).toEqual(acknowledged.toSorted());
    expect(second.depth).toBe(0);
  });

  it('keeps the order of messages that are put together, in as few writes as it can', async () => {
    const fileSystem = new FaultyFileSystem();
    const queue = await newQueue({ fileSystem });
    await putAll(queue, texts('orders', 0, 999));
    expect(fileSystem.calls.filter((call) => call.startsWith('write') && call.endsWith('0.dat'))).toHaveLength(1);
    expect(await takeAll(queue)).toEqual(texts('orders', 0, 999));
  });

  it('shares the sync of messages that are put together where each is synced', async () => {
    const fileSystem = new FaultyFileSystem();
    const queue = await newQueue({ fileSystem, syncEvery: 1 });
    await queue.put(Buffer.from('first'));
    fileSystem.calls.splice(0);
    await putAll(queue, texts('orders', 0, 99));
    expect(fileSystem.calls.filter((call) => call.startsWith('sync '))).toHaveLength(2);
  });

  it('gives a message that was read already while the disk is busy with a sync', async () => {
    const fileSystem = new FaultyFileSystem();
    const queue = await newQueue({ fileSystem, syncEvery: 3 });
    await queue.put(Buffer.from('first'));
    await queue.peek();
    const gate = new Gate();
    let isBusy = false;
    fileSystem.syncDirectory = () => {
      isBusy = true;
      return gate.opened;
    };
    const put = putAll(queue, ['second', 'third']);
    await until(() => isBusy);
    expect((await queue.take())?.toString()).toBe('first');
    gate.open();
    await put;
  });

  it('refuses a message that is too short or too long', async () => {
    const queue = await newQueue({ minMessageBytes: 2, maxMessageBytes: 3 });
    for (const bytes of [1, 4]) {
      const refusal = await queue.put(Buffer.alloc(bytes)).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(MessageSizeRefusedError);
      expect(refusal).toMatchObject({ code: 'MMMQ_REFUSED', bytes, message: expect.stringContaining('from 2 to 3') });
    }
    expect(queue.depth).toBe(0);
  });

  it('takes a message of no bytes only where that is allowed', async () => {
    const queue = await newQueue({ minMessageBytes: 0 });
    await putAll(queue, ['', 'x', '']);
    expect(await takeAll(queue)).toEqual(['', 'x', '']);
    await expect((await newQueue()).put(Buffer.alloc(0))).rejects.toThrow(MessageSizeRefusedError);
  });
});

describe('a disk queue as an iterable', () => {
  it('gives what there is and what is put later, each message to one taker, and ends with the close', async () => {
    const queue = await newQueue();
    const taken: string[] = [];
    const consume = async (): Promise<void> => {
      for await (const bytes of queue) taken.push(bytes.toString());
    };
    await putAll(queue, texts('orders', 0, 4));
    const consumers = [consume(), consume()];
    await putAll(queue, texts('orders', 5, 19));
    await until(() => taken.length === 20);
    await queue.close();
    await Promise.all(consumers);
    expect(taken.toSorted()).toEqual(texts('orders', 0, 19));
  });

  it('can be left while it waits, without taking what comes then', async () => {
    const queue = await newQueue();
    const iterator = queue[Symbol.asyncIterator]();
    const next = iterator.next();
    await iterator.return?.();
    expect(await next).toEqual({ done: true, value: undefined });
    await queue.put(Buffer.from('later'));
    expect((await queue.take())?.toString()).toBe('later');
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });
});

describe('a disk queue that is closed', () => {
  it('has written what waited, takes nothing more, and says so', async () => {
    const queue = await newQueue();
    const put = putAll(queue, texts('orders', 0, 9));
    const closed = queue.close();
    await put;
    expect(queue.close()).toBe(closed);
    await closed;
    expect(await metadataIn(queue.dir)).toBe('10\n0,0\n0,640\n');
    for (const use of [() => queue.put(Buffer.from('x')), () => queue.take(), () => queue.peek(), () => queue.empty()])
      await expect(use()).rejects.toMatchObject({ code: 'MMMQ_CLOSED', message: expect.stringContaining('open it again') });
    expect(await queue[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
  });

  it('leaves the files of go-diskqueue and the lock file, and nothing else', async () => {
    const queue = await newQueue();
    await queue.put(Buffer.from('x'));
    await queue.close();
    expect(await readdir(queue.dir)).toEqual(['.mmmq.lock', 'orders.diskqueue.000000.dat', 'orders.diskqueue.meta.dat']);
  });
});

describe('a file that cannot be read', () => {
  /** 120 bytes and their length, eight to a file. */
  const message = (number: number): string => `message ${number} `.padEnd(120, '.');
  const messages = (from: number, to: number): string[] => Array.from({ length: to - from + 1 }, (_, index) => message(from + index));
  const options = { maxBytesPerFile: 1000, minMessageBytes: 10, maxMessageBytes: 1024, syncEvery: 5 };

  it('gives what can be read of it, and the reader goes on with the next; the depth is right at once', async () => {
    const queue = await newQueue(options);
    await putAll(queue, messages(0, 24));
    await truncate(dataFile(queue.dir, 1), 400);
    expect(await take(queue, 11)).toEqual(messages(0, 10));
    expect((await queue.peek())?.toString()).toBe(message(16));
    expect(queue.depth).toBe(9);
    expect(await takeAll(queue)).toEqual(messages(16, 24));
    expect(queue.depth).toBe(0);
    await until(async () => (await dataFilesIn(queue.dir)).join() === 'orders.diskqueue.000001.dat.bad,orders.diskqueue.000003.dat');
  });

  it('is written to no more, where it was the one that is written to', async () => {
    const queue = await newQueue(options);
    await putAll(queue, messages(0, 8));
    await truncate(dataFile(queue.dir, 1), 100);
    expect(await take(queue, 8)).toEqual(messages(0, 7));
    await until(() => queue.depth === 0);
    await queue.put(Buffer.from(message(9)));
    expect(queue.depth).toBe(1);
    expect(await takeAll(queue)).toEqual([message(9)]);
    expect(await dataFilesIn(queue.dir)).toContain('orders.diskqueue.000001.dat.bad');
  });

  it('may have bytes behind its end that somebody else has written: they are no messages', async () => {
    const queue = await newQueue(options);
    await queue.put(Buffer.from(message(0)));
    await appendFile(dataFile(queue.dir, 0), Buffer.alloc(4));
    await putAll(queue, messages(1, 2));
    expect(await takeAll(queue)).toEqual(messages(0, 2));
    expect(await dataFilesIn(queue.dir)).toEqual(['orders.diskqueue.000000.dat']);
  });

  it('may be the last one: then nothing is left', async () => {
    const queue = await newQueue(options);
    await putAll(queue, messages(0, 9));
    await truncate(dataFile(queue.dir, 1), 100);
    expect(await takeAll(queue)).toEqual(messages(0, 7));
    expect(queue.depth).toBe(0);
    await queue.close();
    expect(await metadataIn(queue.dir)).toBe('0\n2,0\n2,0\n');
  });

  it('may be gone: the reader goes on with the next', async () => {
    const dir = await newDirectory();
    const first = await newQueue({ ...options, dir });
    await putAll(first, messages(0, 23));
    await first.close();
    await rm(dataFile(dir, 1));
    const second = await newQueue({ ...options, dir });
    expect(second.depth).toBe(16);
    expect(await takeAll(second)).toEqual([...messages(0, 7), ...messages(16, 23)]);
  });
});
