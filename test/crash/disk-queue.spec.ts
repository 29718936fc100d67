import { afterAll, describe, expect, it } from '@jest/globals';
import { DiskQueueSweep, type DiskQueueSweepReport } from './disk-queue-sweep.js';
import { DISK_QUEUE_WORKLOADS } from './disk-queue-workloads.js';

/** `MMMQ_CRASH_SEED` for another run; `MMMQ_CRASH_ALL=1` for every crash and every error instead of a bounded part: some minutes. */
const SEED = Number(process.env['MMMQ_CRASH_SEED'] ?? '1');
const isWhole = process.env['MMMQ_CRASH_ALL'] === '1';
const OPTIONS = isWhole
  ? { seed: SEED, combinationsUpTo: 8, randomCount: 4, isTornEverywhere: true, startShare: 1, errorShare: 1, crashesPerError: 2 }
  : { seed: SEED, combinationsUpTo: 4, randomCount: 1, isTornEverywhere: false, startShare: 0.1, errorShare: 0, crashesPerError: 1 };
const LIMIT_MS = 3_600_000;

describe('a disk queue', () => {
  const reports: DiskQueueSweepReport[] = [];

  async function sweep(part: 'crashes' | 'errors', workload: (typeof DISK_QUEUE_WORKLOADS)[number]): Promise<DiskQueueSweepReport> {
    const sweeping = new DiskQueueSweep(workload, OPTIONS);
    await sweeping[part]();
    reports.push(sweeping.report);
    const again = `to see it again: MMMQ_CRASH_SEED=${SEED}${isWhole ? ' MMMQ_CRASH_ALL=1' : ''}`;
    expect(sweeping.report.violations.map((violation) => `${violation}\n  ${again}`)).toEqual([]);
    return sweeping.report;
  }

  afterAll(() => {
    const sum = (key: 'images' | 'repeats' | 'errors'): number => reports.reduce((total, report) => total + report[key], 0);
    process.stdout.write(
      `disk queue: seed ${SEED}, ${sum('images')} different disks read and checked behind a crash ` +
        `(${sum('repeats')} more were equal to one of them), ${sum('errors')} runs with an error of the disk\n`,
    );
  });

  it.each(DISK_QUEUE_WORKLOADS)(
    'keeps its promises when the power fails or the process dies at any step of, or in a start after: $name',
    async (workload) => {
      expect((await sweep('crashes', workload)).images).toBeGreaterThan(100);
    },
    LIMIT_MS,
  );

  // Where a file is damaged, an error before that moves what the damage is to meet.
  it.each(DISK_QUEUE_WORKLOADS.filter(({ damages }) => !damages))(
    'goes on by itself when a call fails, and keeps its promises behind a crash after that: $name',
    async (workload) => {
      expect((await sweep('errors', workload)).errors).toBeGreaterThan(20);
    },
    LIMIT_MS,
  );
});
