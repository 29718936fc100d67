import type { Clock } from '../../src/core/index.js';

/** Waits that end when the test says so. */
export function steppedClock(): { clock: Clock; waits: number[]; step: () => Promise<void> } {
  const waits: number[] = [];
  const waiting: (() => void)[] = [];
  const newcomers: (() => void)[] = [];
  const clock: Clock = {
    now: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        waits.push(ms);
        waiting.push(resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
        newcomers.shift()?.();
      }),
  };
  const step = async (): Promise<void> => {
    if (waiting.length === 0) await new Promise<void>((resolve) => newcomers.push(resolve));
    waiting.shift()?.();
  };
  return { clock, waits, step };
}
