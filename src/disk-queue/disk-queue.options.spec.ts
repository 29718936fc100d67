import { describe, expect, it } from '@jest/globals';
import { InvalidValueError } from '../core/index.js';
import { diskQueueSettings, type DiskQueueOptions } from './disk-queue.options.js';

const GIVEN = { dir: '/var/spool', name: 'orders' };

describe('the options of a disk queue', () => {
  it('have defaults, but for the directory and the name', () => {
    expect(diskQueueSettings(GIVEN)).toEqual({
      dir: '/var/spool',
      name: 'orders',
      maxBytesPerFile: 104_857_600,
      minMessageBytes: 1,
      maxMessageBytes: 1_048_576,
      syncEvery: 2500,
      syncTimeoutMs: 2000,
    });
    expect(diskQueueSettings({ dir: 'spool', name: 'orders', syncEvery: undefined }).dir).toBe(`${process.cwd()}/spool`);
  });

  it.each([
    ['dir', ''],
    ['dir', undefined],
    ['name', ''],
    ['name', undefined],
    ['name', '../orders'],
    ['name', 'größe'],
    ['name', 'x'.repeat(201)],
    ['maxBytesPerFile', 0],
    ['maxBytesPerFile', 2 ** 40 + 1],
    ['minMessageBytes', -1],
    ['minMessageBytes', 1.5],
    ['minMessageBytes', 2_000_000],
    ['maxMessageBytes', 0],
    ['maxMessageBytes', 2 ** 30 + 1],
    ['syncEvery', 0],
    ['syncEvery', '10'],
    ['syncTimeoutMs', 0],
    ['syncTimeoutMs', 3_600_001],
    ['syncTimeoutMs', Number.NaN],
  ])('refuse %s: %p, with its name, its value and the rule', (key, value) => {
    const refusal = (): unknown => diskQueueSettings({ ...GIVEN, [key]: value } as DiskQueueOptions);
    expect(refusal).toThrow(InvalidValueError);
    expect(refusal).toThrow(new RegExp(`option ${key} of DiskQueue .*must`));
  });

  it('take the names of topics and channels of nsqd', () => {
    for (const name of ['orders', 'orders:archive', 'orders#ephemeral', 'a.b_c-d'])
      expect(diskQueueSettings({ ...GIVEN, name }).name).toBe(name);
  });
});
