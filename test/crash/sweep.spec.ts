import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { BOUNDED, partRun, PARTS } from './parts.js';
import type { SweepReport } from './sweep.js';

/** A bounded part of what `npm run crash` runs; `MMMQ_CRASH_SEED` for another run, `MMMQ_CRASH_BAIL=1` to end at the first violation. */
const seed = Number(process.env['MMMQ_CRASH_SEED'] ?? 1);
const isBailing = process.env['MMMQ_CRASH_BAIL'] === '1';
const LIMIT_MS = 600_000;

describe('under every crash and every error of the disk', () => {
  const total: SweepReport = { images: 0, repeats: 0, errors: 0, violations: [] };

  beforeAll(() => Logger.overrideLogger(false));
  afterAll(() => {
    Logger.overrideLogger(new Logger());
    process.stdout.write(`crash: ${total.images} images, ${total.violations.length} violations (${total.errors} errors, seed ${seed})\n`);
  });

  for (const part of PARTS) {
    const what = {
      crashes: 'the power fails or the process dies at any step of, or in any start after',
      errors: 'any call fails, and all goes on by itself, in',
      repair: 'a repair is interrupted, or fails, after',
    }[part.part];
    it(
      `every promise holds when ${what}: ${part.workload}`,
      async () => {
        if (isBailing && total.violations.length > 0) return;
        const { report, run } = partRun(part, BOUNDED, seed, isBailing);
        await run();
        total.images += report.images;
        total.errors += report.errors;
        total.violations.push(...report.violations);
        const again = `MMMQ_CRASH_SEED=${seed} npm run jest -- test/crash/sweep -t ${JSON.stringify(part.workload)}`;
        expect(report.violations.slice(0, 5).map((violation) => `${violation}\n  to see it again: ${again}`)).toEqual([]);
        expect(report.images).toBeGreaterThan(10);
        if (part.part !== 'repair') expect(report.errors).toBeGreaterThan(5);
      },
      LIMIT_MS,
    );
  }
});
