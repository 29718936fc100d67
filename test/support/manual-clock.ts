import type { Clock } from '../../src/core/index.js';

interface Wait {
  readonly untilMs: number;
  readonly end: () => void;
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  /** Every wait that was asked for, in order, in milliseconds. */
  readonly asked: number[] = [];
  private readonly waits = new Set<Wait>();
  private nowMs = 1_700_000_000_000;

  now(): number {
    return this.nowMs;
  }

  get waiting(): number {
    return this.waits.size;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    this.asked.push(ms);
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

  advance(ms: number): void {
    this.nowMs += ms;
    for (const wait of this.waits) if (wait.untilMs <= this.nowMs) wait.end();
  }
}
