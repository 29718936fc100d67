/** Bounds of a wait that doubles, in milliseconds. */
export interface Backoff {
  readonly initialMs: number;
  readonly maxMs: number;
}

/** Up to this share on top of each wait, so that many dispatchers do not come back to one consumer at the same moment. */
const JITTER = 0.1;

/** So many doublings lead past any maximum; more of them would only lead out of the numbers. */
const MAX_DOUBLINGS = 40;

/**
 * The wait before the next attempt, in whole milliseconds: `initialMs` doubled with each failure up to `maxMs`, and 0-10 % at random on top.
 * @param run how many attempts in a row have failed so far, from 1
 * @param random a number from 0 to below 1
 */
export function backoffMs(run: number, { initialMs, maxMs }: Backoff, random: () => number = Math.random): number {
  const waitMs = Math.min(maxMs, initialMs * 2 ** Math.min(run - 1, MAX_DOUBLINGS));
  return Math.floor(waitMs + waitMs * JITTER * random());
}
