import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { SendCounts } from './send-counts.js';

describe('SendCounts', () => {
  it('counts each message of a batch, however the batches that begin with it grow and shrink', () => {
    const sends = new SendCounts();
    expect(sends.of(10)).toBe(0);
    expect(sends.add(10, 5)).toBe(1);
    expect(sends.add(10, 2)).toBe(2);
    expect(sends.add(10, 8)).toBe(3);
    expect([10, 11, 12, 14, 15, 17, 18].map((offset) => sends.of(offset))).toEqual([3, 3, 2, 2, 1, 1, 0]);
    expect(sends.add(12, 4)).toBe(3);
    expect([12, 15, 16, 17, 18].map((offset) => sends.of(offset))).toEqual([3, 2, 1, 1, 0]);
    expect(sends.add(18, 1)).toBe(1);
  });

  it('says of every message what a count for each of them would', () => {
    const steps = fc.array(fc.record({ passed: fc.nat(4), count: fc.integer({ min: 1, max: 6 }) }), { maxLength: 40 });
    fc.assert(
      fc.property(steps, (batches) => {
        const sends = new SendCounts();
        const counts = new Map<number, number>();
        let first = 0;
        for (const { passed, count } of batches) {
          first += passed;
          for (let offset = first; offset < first + count; offset += 1) counts.set(offset, (counts.get(offset) ?? 0) + 1);
          expect(sends.add(first, count)).toBe(counts.get(first));
          for (let offset = first; offset < first + 10; offset += 1) expect(sends.of(offset)).toBe(counts.get(offset) ?? 0);
        }
      }),
    );
  });
});
