import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { getSystemErrorName } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { temporaryDirectories } from '../../../test/support/temporary-directory.js';
import { until } from '../../../test/support/until.js';
import { FileError } from './file.error.js';
import { OpenMode, type File } from './file-system.port.js';
import { NodeFileSystem } from './node-file-system.js';
import { writeFully } from './positional-io.js';

const newDirectory = temporaryDirectories();
const fileSystem = new NodeFileSystem();

describe('the file system', () => {
  it('really asks the operating system: every verb of a closed file fails with its own code', async () => {
    const path = join(await newDirectory(), 'file');
    const file = await fileSystem.open(path, OpenMode.NEW);
    await file.close();
    const verbs: Record<string, () => Promise<unknown>> = {
      read: () => file.read(Buffer.alloc(1), 0),
      write: () => file.write(Buffer.from('x'), 0),
      truncate: () => file.truncate(0),
      sync: () => file.sync(),
      size: () => file.size(),
      close: () => file.close(),
    };
    for (const [verb, call] of Object.entries(verbs))
      expect([verb, await call().catch((error: FileError) => error.errno)]).toEqual([verb, 'EBADF']);
    await expect(fileSystem.syncDirectory(join(path, 'nowhere'))).rejects.toMatchObject({ errno: 'ENOTDIR' });
  });

  it('creates only what is not there, opens only what is, and never truncates', async () => {
    const path = join(await newDirectory(), 'file');
    await expect(fileSystem.open(path, OpenMode.EXISTING)).rejects.toMatchObject({ errno: 'ENOENT', path, code: 'MMMQ_IO' });
    await writeFile(path, 'content');
    await expect(fileSystem.open(path, OpenMode.NEW)).rejects.toMatchObject({ errno: 'EEXIST' });
    for (const mode of [OpenMode.EXISTING, OpenMode.EXISTING_OR_NEW]) {
      const file = await fileSystem.open(path, mode);
      expect(await file.size()).toBe(7);
      await file.close();
    }
  });

  it('does not wait for a writer where a pipe has the name of a file', async () => {
    const path = join(await newDirectory(), 'pipe');
    execFileSync('mkfifo', [path]);
    let isOpen = false;
    const opened = fileSystem.open(path, OpenMode.READING).finally(() => (isOpen = true));
    try {
      await until(() => isOpen);
    } finally {
      // Lets go whoever waits all the same.
      closeSync(openSync(path, 'r+'));
      await (await opened).close();
    }
  });

  it('says what is left, in bytes and files', async () => {
    const room = await fileSystem.room(await newDirectory());
    expect(room.bytes).toBeGreaterThan(0);
    expect(room.files).toBeGreaterThan(0);
  });

  it('calls a full disk and a used-up quota by one name', () => {
    for (const errno of ['ENOSPC', 'EDQUOT'])
      expect(new FileError('write', 'x', errno)).toMatchObject({ code: 'MMMQ_DISK_FULL', isDiskFull: true });
    expect(new FileError('write', 'x', 'EIO')).toMatchObject({ code: 'MMMQ_IO', isDiskFull: false });
  });

  it('has the code of the operating system also where Node has none', () => {
    const errno = -constants.errno.EDQUOT;
    const cause = Object.assign(new Error('write'), { errno, code: getSystemErrorName(errno), syscall: 'write' });
    expect(FileError.from('write', 'x', cause)).toMatchObject({ errno: 'EDQUOT', isDiskFull: true, cause });
    const unknown = { errno: -9999, code: 'Unknown system error -9999' };
    expect(FileError.from('write', 'x', unknown)).toMatchObject({ errno: 'Unknown system error -9999', code: 'MMMQ_IO' });
  });
});

/** Where it is the sync behind a write that brings it to the disk, no error can be had without a broken one. */
const describeInOneCall = process.platform === 'linux' ? describe : describe.skip;

describe('a file that is written through the cache', () => {
  it('holds what was written, and what was cut', async () => {
    const path = join(await newDirectory(), 'file');
    await writeFile(path, 'content');
    const file = await fileSystem.open(path, OpenMode.WRITE_THROUGH);
    await writeFully(file, Buffer.from('CON'), 0);
    await file.sync();
    await file.truncate(4);
    await file.sync();
    await file.close();
    expect(await readFile(path, 'utf8')).toBe('CONt');
    await expect(fileSystem.open(`${path}.not-there`, OpenMode.WRITE_THROUGH)).rejects.toMatchObject({ errno: 'ENOENT' });
  });
});

describeInOneCall('a write that is its own sync', () => {
  it('says in the sync what went wrong in a write, once', async () => {
    // Refuses these bytes whoever writes them, and has nothing to sync.
    const path = '/proc/self/oom_score_adj';
    const file = await fileSystem.open(path, OpenMode.WRITE_THROUGH);
    expect(await file.write(Buffer.from('nonsense'), 0)).toBe(8);
    await expect(file.sync()).rejects.toMatchObject({ operation: 'sync', errno: 'EINVAL', cause: { operation: 'write' } });
    await expect(file.sync()).rejects.toMatchObject({ operation: 'sync', cause: { syscall: 'fdatasync' } });
    await file.close();
  });
});

describe('a full write', () => {
  it('ends with an error when a write neither fails nor moves', async () => {
    const file = { path: 'x', write: () => Promise.resolve(0) } as unknown as File;
    await expect(writeFully(file, Buffer.from('x'), 0)).rejects.toMatchObject({ errno: 'no progress' });
  });
});
