import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FaultyFileSystem } from '../../../test/support/faulty-file-system.js';
import { Gate } from '../../../test/support/gate.js';
import { temporaryDirectories } from '../../../test/support/temporary-directory.js';
import { OpenFiles, OpenMode } from './index.js';

const newDirectory = temporaryDirectories();

describe('open files', () => {
  let fileSystem: FaultyFileSystem;
  let files: OpenFiles;
  let paths: string[];

  beforeEach(async () => {
    const dir = await newDirectory();
    fileSystem = new FaultyFileSystem();
    files = new OpenFiles(fileSystem);
    paths = Array.from({ length: 100 }, (_, index) => join(dir, `file-${index}`));
    await Promise.all(paths.map((path) => writeFile(path, '')));
  });

  afterEach(() => files.closeAll());

  const path = (index: number): string => paths[index] ?? '';
  const touch = (index: number): Promise<number> => files.use(path(index), (file) => file.size());
  async function touchAll(first: number, end: number): Promise<void> {
    for (let index = first; index < end; index += 1) await touch(index);
  }
  const opens = (index: number): number => fileSystem.calls.filter((call) => call === `open ${basename(path(index))}`).length;
  const fail = (errno: string, times?: number): unknown =>
    fileSystem.fail({ operation: 'open', path: /-99$/, errno, ...(times === undefined ? {} : { times }) });

  it.each(['EMFILE', 'ENFILE'])(
    'give up the 64 that were idle the longest when an open finds no handle (%s), and try once more',
    async (errno) => {
      await touchAll(0, 90);
      await touch(0);
      fail(errno, 1);
      expect(await touch(99)).toBe(0);
      expect(opens(99)).toBe(2);
      expect(fileSystem.closed).toEqual(paths.slice(1, 65).map((closed) => basename(closed)));
      await touchAll(65, 90);
      expect(opens(70)).toBe(1);
    },
  );

  it('keep fewer idle ones from then on, as connections need handles too', async () => {
    await touchAll(0, 90);
    fail('EMFILE', 1);
    await touch(99);
    fileSystem.closed.length = 0;
    await touchAll(0, 64);
    // 26 were left, and the one that was missing a handle: of 91 that were used, 64 are open.
    expect(fileSystem.closed).toHaveLength(27);
  });

  it('fail when there is still no handle, and can be used when there is one again', async () => {
    await touchAll(0, 3);
    fail('EMFILE', 2);
    await expect(touch(99)).rejects.toMatchObject({ errno: 'EMFILE' });
    expect(opens(99)).toBe(2);
    expect(await touch(99)).toBe(0);
  });

  it('do not try again where nothing could be closed: what is in use stays open', async () => {
    fail('EMFILE', 1);
    const inUse = files.use(path(0), () => expect(touch(99)).rejects.toMatchObject({ errno: 'EMFILE' }));
    await inUse;
    expect([opens(99), fileSystem.closed]).toEqual([1, []]);
  });

  it.each(['EACCES', 'EIO', 'ENOENT', 'ENOSPC'])('close nothing for another error (%s)', async (errno) => {
    await touchAll(0, 3);
    fail(errno, 1);
    await expect(touch(99)).rejects.toMatchObject({ errno });
    expect([opens(99), fileSystem.closed]).toEqual([1, []]);
  });

  it('give up idle ones for what else takes a handle: a new file, a directory', async () => {
    for (const operation of ['open', 'syncDirectory'] as const) {
      await touchAll(0, 3);
      fileSystem.fail({ operation, path: /./, errno: 'EMFILE', times: 1 });
      if (operation === 'open') await (await files.fileSystem.open(`${path(0)}.new`, OpenMode.NEW)).close();
      else await files.fileSystem.syncDirectory(join(path(0), '..'));
    }
    expect(fileSystem.closed.filter((name) => !name.endsWith('.new'))).toHaveLength(6);
  });

  it('keep so many idle ones beside however many are in use', async () => {
    files = new OpenFiles(fileSystem, 2);
    const gate = new Gate();
    const busy = Promise.all(paths.slice(0, 50).map((each) => files.use(each, () => gate.opened)));
    for (let round = 0; round < 3; round += 1) await touchAll(50, 52);
    expect([opens(50), opens(51), fileSystem.closed]).toEqual([1, 1, []]);
    await touch(52);
    expect(fileSystem.closed).toEqual([basename(path(50))]);
    gate.open();
    await busy;
    await files.closeAll();
    expect(fileSystem.closed).toHaveLength(53);
  });
});
