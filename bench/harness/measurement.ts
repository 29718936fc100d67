import { createHistogram, performance } from 'node:perf_hooks';

/** What one round found out about one subject. An operation is a publish, an append, a delivery, a lookup. */
export interface Measurement {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time that the measured process spent per operation, in microseconds; missing where the system does not tell. */
  readonly cpuMicros?: number | undefined;
  /** How much of one core the load generator used, 0 to 1; missing where there is none. */
  readonly generatorCpuShare?: number;
}

/** Counts operations and how long they took, from the last {@link begin} on. */
export class Stopwatch {
  private readonly histogram = createHistogram();
  private beganAtMs = performance.now();

  begin(): void {
    this.histogram.reset();
    this.beganAtMs = performance.now();
  }

  /** An operation that took so long has ended. */
  record(tookMs: number): void {
    this.histogram.record(Math.max(1, Math.round(tookMs * 1e6)));
  }

  /** Operations since then. */
  get count(): number {
    return this.histogram.count;
  }

  get elapsedMs(): number {
    return performance.now() - this.beganAtMs;
  }

  /** To be called when an operation was recorded at least. @param cpuMs what all of them took */
  measurement(cpuMs: number | undefined): Measurement {
    const { count, elapsedMs } = this;
    return {
      perSecond: (count / elapsedMs) * 1_000,
      p50Ms: this.histogram.percentile(50) / 1e6,
      p99Ms: this.histogram.percentile(99) / 1e6,
      cpuMicros: cpuMs === undefined ? undefined : (cpuMs * 1_000) / count,
    };
  }
}

interface LoopTime {
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Does the operation over and over, one at a time, and counts after the warm-up. The CPU is that of this process. */
export function timedLoop(time: LoopTime, operation: () => void | Promise<unknown>): Promise<Measurement> {
  return timedLoops(1, time, operation);
}

/** So many such loops at once. */
export async function timedLoops(
  loops: number,
  { warmUpMs, measureMs }: LoopTime,
  operation: () => void | Promise<unknown>,
): Promise<Measurement> {
  const stopwatch = new Stopwatch();
  const loopFor = async (ms: number): Promise<void> => {
    while (stopwatch.elapsedMs < ms) {
      const startedAtMs = performance.now();
      await operation();
      stopwatch.record(performance.now() - startedAtMs);
    }
  };
  const runFor = async (ms: number): Promise<void> => {
    stopwatch.begin();
    await Promise.all(Array.from({ length: loops }, () => loopFor(ms)));
  };
  await runFor(warmUpMs);
  const cpuBefore = process.cpuUsage();
  await runFor(measureMs);
  const { user, system } = process.cpuUsage(cpuBefore);
  return stopwatch.measurement((user + system) / 1_000);
}

/** Does the operation so many times, one at a time. The CPU is that of this process. */
export async function timedCount(count: number, operation: () => void | Promise<unknown>): Promise<Measurement> {
  const stopwatch = new Stopwatch();
  const cpuBefore = process.cpuUsage();
  stopwatch.begin();
  for (let done = 0; done < count; done += 1) {
    const startedAtMs = performance.now();
    await operation();
    stopwatch.record(performance.now() - startedAtMs);
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  return stopwatch.measurement((user + system) / 1_000);
}
