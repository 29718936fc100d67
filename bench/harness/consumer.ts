import { setTimeout } from 'node:timers/promises';
import { programPath } from './program.js';
import type { ServerProcess } from './server-process.js';
import type { Workbench } from './workbench.js';

/** How many messages have come, by the consumer's own clock. */
export interface Arrivals {
  readonly count: number;
  readonly atMs: number;
}

/** Often enough, and too seldom to disturb. */
const POLL_EVERY_MS = 10;

/** A consumer that takes every message, in a process of its own. */
export class Consumer {
  private constructor(private readonly server: ServerProcess) {}

  static async start(bench: Workbench): Promise<Consumer> {
    return new Consumer(await bench.serve(programPath('harness', 'consumer')));
  }

  get url(): string {
    return this.server.url;
  }

  get pid(): number {
    return this.server.pid;
  }

  async arrivals(): Promise<Arrivals> {
    return (await (await fetch(this.url)).json()) as Arrivals;
  }

  /** Waits until more than that have come. */
  async hasMoreThan({ count }: Arrivals): Promise<void> {
    while ((await this.arrivals()).count <= count) await setTimeout(POLL_EVERY_MS);
  }
}

/** Messages per second between two looks. */
export function arrivalsPerSecond(before: Arrivals, after: Arrivals): number {
  return ((after.count - before.count) / (after.atMs - before.atMs)) * 1_000;
}
