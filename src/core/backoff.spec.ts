import { describe, expect, it } from '@jest/globals';
import { backoffMs } from './index.js';

describe('the wait before an attempt', () => {
  const backoff = { initialMs: 1000, maxMs: 60_000 };

  it('starts at 1 s, doubles and stays at 60 s', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7, 8, 100, 1_000_000].map((run) => backoffMs(run, backoff, () => 0));
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]);
  });

  it('carries up to 10 % at random on top, also at its longest', () => {
    expect(backoffMs(1, backoff, () => 0.5)).toBe(1050);
    expect(backoffMs(9, backoff, () => 0.999_999)).toBe(65_999);
    for (let run = 1; run < 10; run++) {
      const waitMs = backoffMs(run, backoff);
      const least = backoffMs(run, backoff, () => 0);
      expect(waitMs).toBeGreaterThanOrEqual(least);
      expect(waitMs).toBeLessThanOrEqual(least * 1.1);
    }
  });

  it('is a number also where the first wait is nothing', () => {
    expect(backoffMs(5000, { initialMs: 0, maxMs: 10 }, () => 0.5)).toBe(0);
  });
});
