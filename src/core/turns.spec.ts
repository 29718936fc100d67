import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Gate } from '../../test/support/gate.js';
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

  it('lets urgent work go ahead of all that is not, in its own order', async () => {
    const turns = new Turns(1);
    const begun: string[] = [];
    const take = (name: string, isUrgent: boolean): Promise<void> =>
      turns.take(
        async () => {
          begun.push(name);
          await setImmediate();
        },
        { isUrgent },
      );
    await Promise.all([take('first', false), take('a', false), take('urgent', true), take('b', false), take('urgent too', true)]);
    expect(begun).toEqual(['first', 'urgent', 'urgent too', 'a', 'b']);
  });

  it('ends a wait with its signal, which costs nobody a turn, and leaves alone what has begun', async () => {
    const turns = new Turns(1);
    const [first, second] = [new AbortController(), new AbortController()];
    const gate = new Gate();
    const underWay = turns.take(() => gate.opened, { signal: first.signal });
    const given = turns.take(() => Promise.reject(new Error('it was given up')), { signal: second.signal });
    const last = turns.take(async () => 'done');
    expect(turns.hasFree).toBe(false);
    first.abort(new Error('too late'));
    second.abort(new Error('no longer'));
    await expect(given).rejects.toThrow('no longer');
    await expect(turns.take(async () => 'never', { signal: second.signal })).rejects.toThrow('no longer');
    gate.open();
    await expect(Promise.all([underWay, last])).resolves.toEqual([undefined, 'done']);
    expect(turns.hasFree).toBe(true);
  });
});
