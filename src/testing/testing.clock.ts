import type { Clock } from '../core/index.js';

interface Wait {
  readonly untilMs: number;
  readonly end: () => void;
}

/** A clock that stands still until somebody moves it: a wait of a minute takes no time, and none ends by itself. */
export class TestingClock implements Clock {
  private readonly waits = new Set<Wait>();
  private nowMs: number;

  /** @param nowMs where it begins, in epoch milliseconds; at the real time by default */
  constructor(nowMs: number = Date.now()) {
    this.nowMs = nowMs;
  }

  /** Epoch milliseconds. */
  now(): number {
    return this.nowMs;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        this.waits.delete(wait);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const wait: Wait = { untilMs: this.nowMs + ms, end };
      this.waits.add(wait);
      signal.addEventListener('abort', end);
    });
  }

  /** Moves on by so many milliseconds, and ends the waits that are over then, in the order of their ends. */
  advance(ms: number): void {
    this.nowMs += ms;
    const over = [...this.waits].filter(({ untilMs }) => untilMs <= this.nowMs).sort((a, b) => a.untilMs - b.untilMs);
    for (const { end } of over) end();
  }

  /** Moves on to the end of the shortest wait. @returns false where nobody waits */
  advanceToNext(): boolean {
    const untilMs = Math.min(...Array.from(this.waits, (wait) => wait.untilMs));
    if (untilMs === Number.POSITIVE_INFINITY) return false;
    this.advance(Math.max(0, untilMs - this.nowMs));
    return true;
  }
}
