import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Turns } from './turns.js';

describe('turns', () => {
  it('never has more under way than it may, however many join while others leave, and keeps their order', async () => {
    const turns = new Turns(8);
    const begun: number[] = [];
    let atOnce = 0;
    let most = 0;
    const taken: Promise<unknown>[] = [];
    for (let index = 0; index < 100; index += 1) {
      taken.push(
        turns.take(async () => {
          begun.push(index);
          most = Math.max(most, (atOnce += 1));
          await setImmediate();
          atOnce -= 1;
          if (index % 5 === 0) throw new Error('fails in its turn');
          return index;
        }),
      );
      if (index % 20 === 19) await setImmediate();
    }
    const outcomes = await Promise.allSettled(taken);

    expect(most).toBe(8);
    expect(begun).toEqual(taken.map((_, index) => index));
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(20);
  });
});
