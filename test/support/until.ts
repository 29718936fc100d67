import { setImmediate } from 'node:timers/promises';

const LIMIT_MS = 20_000;

/** Waits until the condition holds. One that never does fails the test before Jest's own limit, so that no loop is left behind. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + LIMIT_MS;
  while (!(await condition())) {
    if (performance.now() > limit) throw new Error(`still not so after ${LIMIT_MS} ms: ${condition.toString()}`);
    await setImmediate();
  }
}
