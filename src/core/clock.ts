import { setTimeout as sleep } from 'node:timers/promises';

/** Time, as the broker needs it. A port, so that a test can turn minutes of back-off into a moment. */
export interface Clock {
  /** Wall clock, epoch milliseconds: for time stamps only, never for measuring a wait. */
  now(): number;
  /**
   * Waits on the monotonic clock.
   * @param ms milliseconds
   * @param signal ends the wait early; the promise then resolves as well, and the caller looks at the signal
   */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    try {
      await sleep(ms, undefined, { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  },
};
