import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { diskQueues } from '../../test/support/disk-queue.js';
import { temporaryDirectories } from '../../test/support/temporary-directory.js';
import { NodeFileSystem } from '../storage/file-system/index.js';
import { DiskQueueLockedError } from './index.js';

const openQueue = diskQueues();
const newDirectory = temporaryDirectories();

describe('the directory of a disk queue', () => {
  it('is made, with all that is missing above it', async () => {
    const dir = join(await newDirectory(), 'a/b/c');
    await openQueue({ dir, name: 'orders' });
    expect(await readdir(dir)).toContain('.mmmq.lock');
  });

  it('can hold several queues of one process, whose names may begin alike', async () => {
    const dir = await newDirectory();
    const names = ['orders', 'orders.diskqueue.000001', 'order', 'orders:archive'];
    const queues = await Promise.all(names.map((name) => openQueue({ dir, name })));
    for (const queue of queues) await queue.put(Buffer.from(queue.name));
    for (const queue of queues) await queue.close();
    for (const name of names) {
      const queue = await openQueue({ dir, name });
      expect(queue.depth).toBe(1);
      expect((await queue.take())?.toString()).toBe(name);
    }
  });

  it('refuses to open a queue twice, until it is closed', async () => {
    const dir = await newDirectory();
    const first = await openQueue({ dir, name: 'orders' });
    const refusal = await openQueue({ dir: `${dir}/.`, name: 'orders' }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(DiskQueueLockedError);
    expect(refusal).toMatchObject({ code: 'MMMQ_LOCKED', message: expect.stringContaining('open in this process already') });
    const closed = first.close();
    await (await Promise.all([closed, openQueue({ dir, name: 'other' })]))[1].close();
    await openQueue({ dir, name: 'orders' });
  });

  it('is refused where another holds the lock, by whatever way it came there, and unchanged', async () => {
    const dir = await newDirectory();
    await openQueue({ dir, name: 'orders' });
    const files = await readdir(dir);
    await expect(openQueue({ dir, name: 'other', fileSystem: new NodeFileSystem() })).rejects.toThrow(DiskQueueLockedError);
    expect(await readdir(dir)).toEqual(files);
  });

  it('is refused while another process has it, with its number, and free when that one is gone', async () => {
    const dir = await newDirectory();
    await writeFile(join(dir, '.mmmq.lock'), '4711\n');
    const holder = `
      import { openSync } from 'node:fs';
      import { tryLock } from 'fs-native-extensions';
      console.log(tryLock(openSync(${JSON.stringify(join(dir, '.mmmq.lock'))}, 'r+')));
      setInterval(() => undefined, 60_000);`;
    const other = spawn(process.execPath, ['--input-type=module', '-e', holder], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      expect(String((await once(other.stdout, 'data'))[0])).toBe('true\n');
      await expect(openQueue({ dir, name: 'orders' })).rejects.toThrow(/in use by another process \(4711\): .*\(option dir\)/);
    } finally {
      other.kill('SIGKILL');
      await once(other, 'exit');
    }
    await openQueue({ dir, name: 'orders' });
  });

  it('is written to no more where its lock file was taken away', async () => {
    const dir = await newDirectory();
    const queue = await openQueue({ dir, name: 'orders', syncEvery: 1 });
    await queue.put(Buffer.from('first'));
    await rm(join(dir, '.mmmq.lock'));
    await expect(queue.put(Buffer.from('second'))).rejects.toMatchObject({ code: 'MMMQ_LOCKED' });
    expect((await queue.take())?.toString()).toBe('first');
    await expect(queue.close()).rejects.toMatchObject({ code: 'MMMQ_LOCKED' });
  });

  it('is told from another one that has come in its place', async () => {
    const dir = join(await newDirectory(), 'queue');
    const first = await openQueue({ dir, name: 'orders' });
    await rename(dir, `${dir}.moved`);
    const second = await openQueue({ dir, name: 'orders', fileSystem: new NodeFileSystem() });
    await expect(first.close()).rejects.toMatchObject({ code: 'MMMQ_LOCKED' });
    expect(second.depth).toBe(0);
  });
});
