import { describe, expect, it } from '@jest/globals';
import { SimulatedDisk } from '../../test/crash/simulated-disk.js';
import { OpenMode, writeFully, type File } from '../storage/file-system/index.js';
import { TailFile } from './tail.file.js';

const FILE = 7;

interface Stage {
  readonly tail: TailFile;
  readonly data: File;
  /** Writes to the data file and proves it; accepts it where it counts. */
  write(position: number, text: string, isAccepted?: boolean): Promise<void>;
  provenEnd(from: number, size: number): Promise<number | undefined>;
}

async function stage(): Promise<Stage> {
  const disk = SimulatedDisk.empty(1);
  const tail = new TailFile(disk, '/', 'orders');
  await tail.make();
  const data = await disk.open('/data', OpenMode.NEW);
  return {
    tail,
    data,
    async write(position, text, isAccepted = true) {
      await writeFully(data, Buffer.from(text), position);
      const crc = await tail.prove({ file: FILE, position }, Buffer.from(text));
      if (isAccepted) tail.accept(crc);
    },
    provenEnd: async (from, size) => (await tail.read())?.renew(data, { file: FILE, position: from }, size),
  };
}

describe('the tail file of a disk queue', () => {
  it('is not there where nobody has made it', async () => {
    expect(await new TailFile(SimulatedDisk.empty(1), '/', 'orders').read()).toBeUndefined();
  });

  it('proves what was written in a row, and no byte that is another', async () => {
    const { write, provenEnd, data } = await stage();
    await write(10, 'aaaa');
    await write(14, 'bb');
    await write(16, 'cccc');
    expect(await provenEnd(10, 20)).toBe(20);
    expect(await provenEnd(14, 20)).toBe(20);
    expect(await provenEnd(11, 20)).toBe(11);
    expect(await provenEnd(10, 19)).toBe(16);
    await writeFully(data, Buffer.from('B'), 15);
    expect(await provenEnd(10, 20)).toBe(14);
  });

  it('proves nothing across a piece of another size or another time', async () => {
    const { write, provenEnd, data } = await stage();
    await write(0, 'aaaa', false);
    await write(0, 'bbbb');
    await write(4, 'cccc');
    expect(await provenEnd(0, 8)).toBe(8);
    // A power cut has kept what was taken back, and lost what came in its place: what follows did not follow that.
    await writeFully(data, Buffer.from('aaaa'), 0);
    expect(await provenEnd(0, 8)).toBe(4);
  });

  it('begins anew once the metadata knows the records, and what is left of before proves nothing wrong', async () => {
    const { tail, write, provenEnd } = await stage();
    await write(0, 'aaaa');
    await write(4, 'bbbb');
    tail.restart();
    await write(8, 'cccc');
    expect(await provenEnd(8, 12)).toBe(12);
    expect(await provenEnd(4, 12)).toBe(8);
  });

  it('proves nothing for another file', async () => {
    const { tail, write, data } = await stage();
    await write(0, 'aaaa');
    expect(await (await tail.read())?.renew(data, { file: FILE + 1, position: 0 }, 4)).toBe(0);
  });
});
