import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Sweep, type SweepOptions, type SweepReport } from './sweep.js';
import { WORKLOADS } from './workloads.js';

/** `MMMQ_CRASH=full` tries everything, and `MMMQ_CRASH_SEED` another run of it. */
const isFull = process.env['MMMQ_CRASH'] === 'full';
const seed = Number(process.env['MMMQ_CRASH_SEED'] ?? 1);
const CRASHES: SweepOptions = { seed, share: isFull ? 1 : 0.05, randomImages: isFull ? 12 : 4 };
const ERRORS: SweepOptions = { seed, share: isFull ? 1 : 0.01, randomImages: 2 };
const ERRORS_IN_RECOVERY: SweepOptions = { seed, share: isFull ? 0.5 : 0.06, randomImages: 0 };
const LIMIT_MS = isFull ? 3_600_000 : 120_000;

describe('under every crash and every error of the disk', () => {
  const total: SweepReport = { images: 0, errors: 0, violations: [] };

  beforeAll(() => Logger.overrideLogger(false));
  afterAll(() => {
    Logger.overrideLogger(new Logger());
    process.stdout.write(`crash: ${total.images} images, ${total.violations.length} violations (${total.errors} errors, seed ${seed})\n`);
  });

  async function run(sweep: Sweep, work: () => Promise<void>): Promise<void> {
    await work();
    const { images, errors, violations } = sweep.report;
    total.images += images;
    total.errors += errors;
    total.violations.push(...violations);
    expect(violations.slice(0, 5)).toEqual([]);
  }

  for (const workload of WORKLOADS) {
    it(
      `every promise holds when the power fails or the process dies at any step of: ${workload.name}`,
      async () => {
        // Many producers share few steps, and only their passes are larger than a sector of the index.
        const share = workload.name.startsWith('sixty-four') ? CRASHES.share * 6 : CRASHES.share;
        const sweep = new Sweep(workload, { ...CRASHES, share });
        await run(sweep, () => sweep.crashes());
        expect(sweep.report.images).toBeGreaterThan(10);
      },
      LIMIT_MS,
    );

    it(
      `every promise holds when any call fails in the start after a crash in: ${workload.name}`,
      async () => {
        const sweep = new Sweep(workload, ERRORS_IN_RECOVERY);
        await run(sweep, () => sweep.errorsInRecovery());
        expect(sweep.report.errors).toBeGreaterThan(0);
      },
      LIMIT_MS,
    );

    it(
      `every promise holds, and all goes on by itself, when any call fails in: ${workload.name}`,
      async () => {
        const sweep = new Sweep(workload, ERRORS);
        await run(sweep, () => sweep.errors());
        expect(sweep.report.errors).toBeGreaterThan(5);
      },
      LIMIT_MS,
    );
  }
});
