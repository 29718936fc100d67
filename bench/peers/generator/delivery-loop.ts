import { performance } from 'node:perf_hooks';
import type { Stopwatch } from '../../harness/measurement.js';
import type { Client } from './client.js';
import type { Work } from './generator.js';

/**
 * Keeps so many messages between their publish and their committed verdict. As soon as a batch of them is committed, another one is
 * published.
 */
export class DeliveryLoop {
  /** When the publish of each message that is not yet committed began. */
  private readonly publishedAtMs = new Map<number, number>();
  private next = 0;
  private isEnding = false;
  private drained: () => void = () => {};

  constructor(
    private readonly client: Required<Pick<Client, 'consume' | 'publishMany'>>,
    private readonly stopwatch: Stopwatch,
    private readonly work: Work,
  ) {}

  async begin(): Promise<void> {
    await this.client.consume((numbers) => this.committed(numbers));
    this.fill();
  }

  /** Publishes no more, and waits until everything was delivered: what is lost would be missed here. */
  async end(): Promise<void> {
    this.isEnding = true;
    if (this.publishedAtMs.size === 0) return;
    await new Promise<void>((resolve) => (this.drained = resolve));
  }

  private fill(): void {
    const { outstanding, batchSize } = this.work;
    while (!this.isEnding && this.publishedAtMs.size + batchSize <= outstanding) {
      const numbers = Array.from({ length: batchSize }, (_, index) => this.next + index);
      this.next += batchSize;
      const nowMs = performance.now();
      for (const number of numbers) this.publishedAtMs.set(number, nowMs);
      void this.client.publishMany(numbers);
    }
  }

  private committed(numbers: readonly number[]): void {
    const nowMs = performance.now();
    for (const number of numbers) {
      const publishedAtMs = this.publishedAtMs.get(number);
      // One that comes a second time was counted.
      if (publishedAtMs === undefined) continue;
      this.publishedAtMs.delete(number);
      this.stopwatch.record(nowMs - publishedAtMs);
    }
    if (this.isEnding && this.publishedAtMs.size === 0) this.drained();
    this.fill();
  }
}
