import { describe, expect, it } from '@jest/globals';
import { TestingClock } from './testing.clock.js';

/** A wait that says when it has ended. */
function waitOf(clock: TestingClock, ms: number, ended: number[], signal = new AbortController().signal): Promise<void> {
  return clock.sleep(ms, signal).then(() => void ended.push(ms));
}

describe('TestingClock', () => {
  it('stands still until it is moved, and then ends the waits that are over, in the order of their ends', async () => {
    const clock = new TestingClock(1000);
    const ended: number[] = [];
    const waits = [30, 10, 20].map((ms) => waitOf(clock, ms, ended));
    clock.advance(20);
    await Promise.all(waits.slice(1));
    expect([clock.now(), ended]).toEqual([1020, [10, 20]]);
    expect(clock.advanceToNext()).toBe(true);
    await waits[0];
    expect([clock.now(), ended]).toEqual([1030, [10, 20, 30]]);
    expect(clock.advanceToNext()).toBe(false);
    expect(clock.now()).toBe(1030);
  });

  it('begins at the real time', () => {
    const before = Date.now();
    expect(new TestingClock().now()).toBeGreaterThanOrEqual(before);
  });

  it('ends a wait early when its signal does, and does not count it any more', async () => {
    const clock = new TestingClock(0);
    const ended: number[] = [];
    const ending = new AbortController();
    const wait = waitOf(clock, 10, ended, ending.signal);
    ending.abort();
    await wait;
    await waitOf(clock, 20, ended, ending.signal);
    expect([clock.advanceToNext(), ended]).toEqual([false, [10, 20]]);
  });
});
