import { InvalidValueError } from '../core/index.js';
import type { Deduplication } from './deduplication.port.js';

const MAX_IDS = 100_000;
const MAX_MAX_IDS = 10_000_000;

export interface InMemoryDeduplicationOptions {
  /** So many ids are remembered, the last ones: 1 to 10,000,000; 100,000 by default. Some 200 bytes each. */
  readonly maxIds?: number | undefined;
}

/**
 * Remembers in memory which messages were handled. It keeps most repeats away and promises little:
 *
 * - a restart forgets everything, and what was handled right before it is handled again;
 * - each instance of the application has a memory of its own;
 * - only the last `maxIds` are remembered;
 * - a listener that has had its effect and then throws is called again.
 *
 * Where an effect must not happen twice, keep the id with the effect, in one transaction.
 */
export class InMemoryDeduplication implements Deduplication {
  private readonly maxIds: number;
  /** In the order in which they were done. */
  private readonly done = new Set<string>();
  private readonly underWay = new Map<string, Promise<void>>();

  /** @throws {InvalidValueError} when `maxIds` is out of its range */
  constructor({ maxIds = MAX_IDS }: InMemoryDeduplicationOptions = {}) {
    if (!Number.isSafeInteger(maxIds) || maxIds < 1 || maxIds > MAX_MAX_IDS)
      throw new InvalidValueError(
        'the option maxIds of InMemoryDeduplication',
        String(maxIds),
        `must be a whole number from 1 to ${MAX_MAX_IDS}`,
      );
    this.maxIds = maxIds;
  }

  async once(id: string, work: () => Promise<void>): Promise<void> {
    // Of several that wait for work that then fails, the first to look does it, and the others wait again.
    for (let other = this.underWay.get(id); other !== undefined; other = this.underWay.get(id)) await other.catch(() => undefined);
    if (this.done.has(id)) return;
    const doing = work();
    this.underWay.set(id, doing);
    try {
      await doing;
      this.remember(id);
    } finally {
      this.underWay.delete(id);
    }
  }

  private remember(id: string): void {
    this.done.add(id);
    if (this.done.size <= this.maxIds) return;
    for (const oldest of this.done) {
      this.done.delete(oldest);
      return;
    }
  }
}
