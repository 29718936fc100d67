import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { temporaryDirectories } from '../../../test/support/temporary-directory.js';
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
});

describe('a full write', () => {
  it('ends with an error when a write neither fails nor moves', async () => {
    const file = { path: 'x', write: () => Promise.resolve(0) } as unknown as File;
    await expect(writeFully(file, Buffer.from('x'), 0)).rejects.toMatchObject({ errno: 'no progress' });
  });
});
