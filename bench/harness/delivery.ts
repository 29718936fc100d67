import { setTimeout } from 'node:timers/promises';
import { dispatcherOf, startBroker } from './broker.js';
import { arrivalsPerSecond, type Arrivals, type Consumer } from './consumer.js';
import { cpuMsBetween, cpuMsOf } from './process-usage.js';
import type { ServerProcess } from './server-process.js';
import { committedOffset } from './stored-messages.js';
import type { Workbench } from './workbench.js';

/** A topic with messages that wait for dispatchers. */
export interface Backlog {
  readonly dataDir: string;
  readonly topic: string;
  readonly count: number;
  readonly consumer: Consumer;
  readonly dispatchers: number;
  /** So many messages in a request at most; each alone where it is left out. */
  readonly batchMaxMessages?: number;
}

/** What came to the consumer in a round. */
export interface Delivery {
  readonly perSecond: number;
  /** CPU time of the broker per delivery. */
  readonly cpuMicros: number | undefined;
  /** How much of one core the consumer used, 0 to 1. */
  readonly consumerCpuShare: number | undefined;
}

/**
 * Starts a broker, lets it deliver, and does something meanwhile. The next call goes on where this one ended.
 * @throws {Error} when the backlog came to its end before that was over
 */
export async function whileDelivering<Result>(
  bench: Workbench,
  { dataDir, topic, count, consumer, dispatchers, batchMaxMessages }: Backlog,
  action: (broker: ServerProcess) => Promise<Result>,
): Promise<Result> {
  const before = await consumer.arrivals();
  const broker = await startBroker(bench, dataDir, { count: dispatchers, consumerUrl: consumer.url, batchMaxMessages });
  await consumer.hasMoreThan(before);
  const result = await action(broker);
  await broker.stop();
  for (let index = 0; index < dispatchers; index += 1) {
    const dispatcher = dispatcherOf(index);
    const committed = await committedOffset(dataDir, topic, dispatcher);
    if (committed >= count) throw new Error(`${dispatcher} was through with all ${count} messages before the end: let there be more`);
  }
  return result;
}

/** Looks at what comes to the consumer from the broker, after the warm-up. */
export async function deliveryOf(bench: Workbench, broker: ServerProcess, consumer: Consumer): Promise<Delivery> {
  const { warmUpMs, measureMs } = bench.scale;
  await setTimeout(warmUpMs);
  const before = await lookAt(broker, consumer);
  await setTimeout(measureMs);
  await consumer.hasMoreThan(before.arrivals);
  const after = await lookAt(broker, consumer);
  const count = after.arrivals.count - before.arrivals.count;
  const elapsedMs = after.arrivals.atMs - before.arrivals.atMs;
  const brokerCpuMs = cpuMsBetween(before.brokerCpuMs, after.brokerCpuMs);
  const consumerCpuMs = cpuMsBetween(before.consumerCpuMs, after.consumerCpuMs);
  return {
    perSecond: arrivalsPerSecond(before.arrivals, after.arrivals),
    cpuMicros: brokerCpuMs === undefined ? undefined : (brokerCpuMs * 1_000) / count,
    consumerCpuShare: consumerCpuMs === undefined ? undefined : consumerCpuMs / elapsedMs,
  };
}

interface Look {
  readonly arrivals: Arrivals;
  readonly brokerCpuMs: number | undefined;
  readonly consumerCpuMs: number | undefined;
}

async function lookAt(broker: ServerProcess, consumer: Consumer): Promise<Look> {
  return { arrivals: await consumer.arrivals(), brokerCpuMs: cpuMsOf(broker.pid), consumerCpuMs: cpuMsOf(consumer.pid) };
}
