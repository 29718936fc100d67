import type { IdempotencyWindow } from './idempotency-window.js';

/**
 * The most ids that are remembered for all topics together. One takes about 100 bytes when it has 36 characters (a UUID) and 160 when it has
 * 96, the most there are: 100 to 160 MB when a hundred topics are at their limit of 10,000.
 */
export const MAX_REMEMBERED_IDS = 1_000_000;

/**
 * Keeps the memory of all topics' idempotency windows within its bound: when there are too many ids, the window that was not used for the
 * longest time is dropped whole, and read back from the log when it is needed again. The window in use stays, so the bound may be passed
 * by what one window holds. Windows are read back one at a time, for the same reason and so that many topics do not crowd the disk.
 */
export class IdempotencyMemory {
  /** The windows that hold something, least recently used first. */
  readonly #windows = new Set<IdempotencyWindow>();
  #latest: IdempotencyWindow | undefined;
  #idCount = 0;
  #lastReading: Promise<void> = Promise.resolve();

  constructor(private readonly maxIds = MAX_REMEMBERED_IDS) {}

  /** How many ids are remembered, in all topics together. */
  get idCount(): number {
    return this.#idCount;
  }

  used(window: IdempotencyWindow): void {
    if (window === this.#latest) return;
    this.#windows.delete(window);
    this.#windows.add(window);
    this.#latest = window;
  }

  /** A window holds more ids than before, or fewer. */
  grown(window: IdempotencyWindow, byIds: number): void {
    this.used(window);
    this.#idCount += byIds;
    for (const oldest of this.#windows) {
      if (this.#idCount <= this.maxIds || oldest === window) break;
      this.#windows.delete(oldest);
      this.#idCount -= oldest.idCount;
      oldest.drop();
    }
  }

  oneAtATime(readBack: () => Promise<void>): Promise<void> {
    const reading = this.#lastReading.then(readBack);
    this.#lastReading = reading.catch(() => undefined);
    return reading;
  }
}
