import { readdir, readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { SimulatedDisk } from '../../test/crash/simulated-disk.js';
import { diskQueues, recordingLogger, takeAll, texts } from '../../test/support/disk-queue.js';
import { FaultyFileSystem } from '../../test/support/faulty-file-system.js';
import { temporaryDirectories } from '../../test/support/temporary-directory.js';
import { until } from '../../test/support/until.js';
import type { DiskQueue, DiskQueueOptions } from './index.js';

const RECORD_BYTES = 64;

const openQueue = diskQueues();
const newDirectory = temporaryDirectories();

describe('an error of the disk', () => {
  let fileSystem: FaultyFileSystem;
  let dir: string;
  let log: string[];

  beforeEach(async () => {
    fileSystem = new FaultyFileSystem();
    dir = await newDirectory();
  });

  function open(options: Partial<DiskQueueOptions> = {}): Promise<DiskQueue> {
    const recording = recordingLogger();
    ({ log } = recording);
    return openQueue({ dir, name: 'orders', fileSystem, logger: recording.logger, maxBytesPerFile: 4 * RECORD_BYTES, ...options });
  }

  const put = (queue: DiskQueue, text: string): Promise<void> => queue.put(Buffer.from(text));

  it.each(['EMFILE', 'ENFILE', 'EACCES', 'EIO'])(
    'in opening a file (%s) is no corruption: nothing is set aside, and the next take goes on',
    async (errno) => {
      const queue = await open();
      for (const text of texts('orders', 0, 7)) await put(queue, text);
      fileSystem.fail({ operation: 'open', path: /000000\.dat$/, errno, times: 4 });
      for (let time = 0; time < 4; time += 1) await expect(queue.take()).rejects.toMatchObject({ errno });
      expect(await takeAll(queue)).toEqual(texts('orders', 0, 7));
      expect(await readdir(dir)).not.toContain('orders.diskqueue.000000.dat.bad');
    },
  );

  it('in reading is an answer twice, and the third time the file counts as one that cannot be read', async () => {
    const queue = await open();
    for (const text of texts('orders', 0, 7)) await put(queue, text);
    const heal = fileSystem.fail({ operation: 'read', path: /000000\.dat$/, errno: 'EIO' });
    await expect(queue.take()).rejects.toMatchObject({ errno: 'EIO' });
    await expect(queue.take()).rejects.toMatchObject({ errno: 'EIO' });
    expect(queue.depth).toBe(8);
    expect((await queue.take())?.toString()).toBe(texts('orders', 4, 4)[0]);
    heal();
    expect(queue.depth).toBe(3);
    await until(async () => (await readdir(dir)).includes('orders.diskqueue.000000.dat.bad'));
    expect(log).toEqual([expect.stringMatching(/^error: .*the disk failed to read it 3 times.* 4 messages are not delivered/)]);
  });

  it('in setting a file aside keeps nobody from going on, and a start from doing it again', async () => {
    const queue = await open({ syncEvery: 1 });
    for (const text of texts('orders', 0, 7)) await put(queue, text);
    await truncate(join(dir, 'orders.diskqueue.000000.dat'), 100);
    const heal = fileSystem.fail({ operation: 'rename', path: /000000\.dat$/, errno: 'EACCES' });
    expect(await takeAll(queue)).toEqual([...texts('orders', 0, 0), ...texts('orders', 4, 7)]);
    await queue.close();
    expect(await readFile(join(dir, 'orders.diskqueue.meta.dat'), 'utf8')).toBe('0\n0,64\n1,256\n');
    expect(await readdir(dir)).toContain('orders.diskqueue.000000.dat');
    heal();
    const again = await open();
    expect(again.depth).toBe(4);
    expect(await takeAll(again)).toEqual(texts('orders', 4, 7));
    expect(await readdir(dir)).toContain('orders.diskqueue.000000.dat.bad');
  });

  it('in a write refuses the messages of that write, leaves nothing of them, and the next one goes on', async () => {
    const queue = await open();
    await put(queue, 'first');
    fileSystem.fail({ operation: 'write', path: /000000\.dat$/, errno: 'ENOSPC', times: 1, bytesWritten: 7 });
    await expect(Promise.all([put(queue, 'second'), put(queue, 'third')])).rejects.toMatchObject({ code: 'MMMQ_DISK_FULL' });
    expect(queue.depth).toBe(1);
    await put(queue, 'x');
    expect(await readFile(join(dir, 'orders.diskqueue.000000.dat'))).toEqual(Buffer.from('\0\0\0\x05first\0\0\0\x01x'));
    expect(await takeAll(queue)).toEqual(['first', 'x']);
  });

  it('in cutting back refuses messages until it could be done', async () => {
    const queue = await open();
    await put(queue, 'first');
    fileSystem.fail({ operation: 'write', path: /000000\.dat$/, errno: 'EIO', times: 1, bytesWritten: 7 });
    fileSystem.fail({ operation: 'truncate', path: /000000\.dat$/, errno: 'EIO', times: 1 });
    await expect(put(queue, 'second')).rejects.toMatchObject({ errno: 'EIO' });
    await expect(put(queue, 'third')).rejects.toMatchObject({ errno: 'EIO' });
    await put(queue, 'fourth');
    expect(await takeAll(queue)).toEqual(['first', 'fourth']);
  });

  it('in a sync refuses those who wait for it; what was acknowledged before is written once more, through a fresh handle', async () => {
    const queue = await open({ syncEvery: 3 });
    await put(queue, 'first');
    await put(queue, 'second');
    fileSystem.fail({ operation: 'sync', path: /000000\.dat$/, errno: 'EIO', times: 1 });
    await expect(put(queue, 'third')).rejects.toMatchObject({ errno: 'EIO' });
    expect(queue.depth).toBe(2);
    expect(fileSystem.closed).toContain('orders.diskqueue.000000.dat');
    fileSystem.calls.splice(0);
    await put(queue, 'fourth');
    const writes = fileSystem.calls.filter((call) => /^(write|sync) .*000000\.dat$/.test(call)).map((call) => call.split(' ')[0]);
    // The fourth; then the first, the second and the fourth again.
    expect(writes).toEqual(['write', 'write', 'write', 'write', 'sync']);
    expect(await takeAll(queue)).toEqual(['first', 'second', 'fourth']);
  });

  it('in a sync leaves nothing in the file of what was taken back', async () => {
    const queue = await open({ syncEvery: 1 });
    await put(queue, 'first');
    fileSystem.fail({ operation: 'sync', path: /000000\.dat$/, errno: 'EIO', times: 1 });
    await expect(put(queue, 'a longer message than the next one')).rejects.toMatchObject({ errno: 'EIO' });
    await put(queue, 'x');
    expect(await readFile(join(dir, 'orders.diskqueue.000000.dat'))).toEqual(Buffer.from('\0\0\0\x05first\0\0\0\x01x'));
  });

  it('in making metadata durable that is there already is settled before anything else is written where it points', async () => {
    const queue = await open({ syncEvery: 1 });
    await put(queue, 'first');
    fileSystem.fail({ operation: 'syncDirectory', path: /./, errno: 'EIO', times: 1 });
    await expect(put(queue, 'second')).rejects.toMatchObject({ errno: 'EIO' });
    expect(await readFile(join(dir, 'orders.diskqueue.meta.dat'), 'utf8')).toBe('2\n0,0\n0,19\n');
    fileSystem.calls.splice(0);
    await put(queue, 'x');
    const steps = fileSystem.calls
      .filter((call) => /^(write .*000000\.dat|rename|syncDirectory)/.test(call))
      .map((call) => call.split(' ')[0]);
    expect(steps).toEqual(['rename', 'syncDirectory', 'write', 'rename', 'syncDirectory']);
    expect(await takeAll(queue)).toEqual(['first', 'x']);
  });

  it('in a sync keeps messages from being given that may not be what the disk shows, until it is well', async () => {
    const queue = await open({ syncEvery: 3 });
    await put(queue, 'first');
    await put(queue, 'second');
    const heal = fileSystem.fail({ operation: 'sync', path: /000000\.dat$/, errno: 'EIO' });
    await expect(put(queue, 'third')).rejects.toMatchObject({ errno: 'EIO' });
    await expect(queue.take()).rejects.toMatchObject({ errno: 'EIO' });
    heal();
    expect(await takeAll(queue)).toEqual(['first', 'second']);
  });

  it.each([
    ['open', 'EMFILE'],
    ['write', 'ENOSPC'],
    ['sync', 'EIO'],
    ['rename', 'EACCES'],
  ] as const)('in writing the metadata (%s) refuses those who wait for it, and keeps nobody from taking', async (operation, errno) => {
    const queue = await open({ syncEvery: 2 });
    await put(queue, 'first');
    const heal = fileSystem.fail({ operation, path: /meta\.dat\.tmp$/, errno });
    await expect(put(queue, 'second')).rejects.toMatchObject({ errno });
    await expect(put(queue, 'third')).rejects.toMatchObject({ errno });
    expect(queue.depth).toBe(1);
    expect((await queue.take())?.toString()).toBe('first');
    expect(await queue.take()).toBeUndefined();
    heal();
    await put(queue, 'fourth');
    expect(await takeAll(queue)).toEqual(['fourth']);
  });

  it('in a sync that nobody waits for is logged once, and so is that it is over', async () => {
    const queue = await open({ syncTimeoutMs: 5 });
    await put(queue, 'first');
    const heal = fileSystem.fail({ operation: 'sync', path: /000000\.dat$/, errno: 'EIO' });
    fileSystem.calls.splice(0);
    await until(() => fileSystem.calls.filter((call) => call === 'sync orders.diskqueue.000000.dat').length > 2);
    heal();
    await until(() => log.length > 1);
    expect(log).toEqual([expect.stringMatching(/^error: .*cannot be made durable.*EIO/), expect.stringMatching(/^log: .*durable again/)]);
  });

  it('in a close is told, and the queue is closed and can be opened again', async () => {
    const queue = await open();
    await put(queue, 'first');
    const heal = fileSystem.fail({ operation: 'sync', path: /meta\.dat\.tmp$/, errno: 'EIO' });
    await expect(queue.close()).rejects.toMatchObject({ errno: 'EIO' });
    heal();
    expect(await takeAll(await open())).toEqual(['first']);
  });

  it('in a start refuses it, calls nothing corrupt, and lets go of the directory', async () => {
    const first = await open();
    for (const text of texts('orders', 0, 7)) await put(first, text);
    await first.close();
    for (const [operation, path] of [
      ['open', /meta\.dat$/],
      ['open', /000001\.dat$/],
      ['open', /tail$/],
      ['syncDirectory', new RegExp(`${dir}$`)],
    ] as const) {
      fileSystem.fail({ operation, path, errno: 'EMFILE', times: 1 });
      await expect(open()).rejects.toMatchObject({ errno: 'EMFILE' });
    }
    expect(await takeAll(await open())).toEqual(texts('orders', 0, 7));
  });
});

describe('a full disk', () => {
  it('refuses messages and gives those that are there; what they took can be used again', async () => {
    const disk = SimulatedDisk.empty(1);
    const { logger } = recordingLogger();
    const queue = await openQueue({ dir: '/data', name: 'orders', fileSystem: disk, logger, maxBytesPerFile: 2048, syncEvery: 4 });
    const message = (number: number): Buffer => Buffer.alloc(500, number);
    for (let number = 0; number < 12; number += 1) await queue.put(message(number));
    disk.limitRoom(0);
    await expect(queue.put(message(12))).rejects.toMatchObject({ code: 'MMMQ_DISK_FULL' });
    for (let number = 0; number < 10; number += 1) expect((await queue.take())?.[0]).toBe(number);
    await until(() => !disk.isFull);
    await queue.put(message(13));
    expect((await queue.take())?.[0]).toBe(10);
    expect(queue.depth).toBe(2);
    await queue.close();
  });
});
