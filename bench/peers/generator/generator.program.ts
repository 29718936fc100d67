import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { Stopwatch, type Measurement } from '../../harness/measurement.js';
import { cpuMsBetween } from '../../harness/process-usage.js';
import { programInput } from '../../harness/program.js';
import type { Client, ClientName, ConnectTo } from './client.js';
import { DeliveryLoop } from './delivery-loop.js';
import type { Order } from './generator.js';
import { perMessage } from './per-message.js';
import { cpuMsOfTree } from './process-tree.js';

/*
 * Puts one peer under load and measures what it sees of it. Each client library is loaded by the generator that needs it, and by no other.
 */

const CLIENTS: Readonly<Record<ClientName, () => Promise<{ readonly connectTo: ConnectTo }>>> = {
  broker: () => import('../clients/broker.client.js'),
  'redis-streams': () => import('../clients/redis-streams.client.js'),
  nats: () => import('../clients/nats.client.js'),
  rabbitmq: () => import('../clients/rabbitmq.client.js'),
  postgresql: () => import('../clients/postgresql.client.js'),
  'pg-boss': () => import('../clients/pg-boss.client.js'),
  bullmq: () => import('../clients/bullmq.client.js'),
  kafka: () => import('../clients/kafka.client.js'),
};

const POLL_EVERY_MS = 10;

/** Something that goes on by itself until it is told to end. */
interface Load {
  begin(): void | Promise<void>;
  end(): Promise<void>;
}

/** So many loops, each of which waits for its publish, or its batch, before it begins the next one. */
class PublishLoops implements Load {
  private readonly loops: Promise<void>[] = [];
  private next = 0;
  private isEnding = false;

  constructor(
    private readonly client: Client,
    private readonly stopwatch: Stopwatch,
    private readonly order: Order,
  ) {}

  begin(): void {
    for (let index = 0; index < this.order.concurrency; index += 1) this.loops.push(this.loop());
  }

  async end(): Promise<void> {
    this.isEnding = true;
    await Promise.all(this.loops);
  }

  private async loop(): Promise<void> {
    const { kind, batchSize } = this.order;
    while (!this.isEnding) {
      const startedAtMs = performance.now();
      if (kind === 'single') await this.client.publish(this.next++);
      else await this.client.publishMany(Array.from({ length: batchSize }, () => this.next++));
      this.stopwatch.record(performance.now() - startedAtMs);
    }
  }
}

function loadOf(client: Client, stopwatch: Stopwatch, order: Order): Load {
  if (order.kind !== 'deliver') return new PublishLoops(client, stopwatch, order);
  const { consume } = client;
  if (consume === undefined) throw new Error(`the client for ${order.target.client} does not consume`);
  return new DeliveryLoop({ consume: consume.bind(client), publishMany: client.publishMany.bind(client) }, stopwatch, order);
}

async function measure(stopwatch: Stopwatch, { target: { pid }, warmUpMs, measureMs }: Order): Promise<Measurement> {
  // Whatever the first one makes, everybody waits for that.
  while (stopwatch.count === 0) await setTimeout(POLL_EVERY_MS);
  await setTimeout(warmUpMs);
  const serverCpuBefore = cpuMsOfTree(pid);
  const ownCpuBefore = process.cpuUsage();
  stopwatch.begin();
  await setTimeout(measureMs);
  while (stopwatch.count === 0) await setTimeout(POLL_EVERY_MS);
  const { user, system } = process.cpuUsage(ownCpuBefore);
  const generatorCpuShare = (user + system) / 1_000 / stopwatch.elapsedMs;
  return { ...stopwatch.measurement(cpuMsBetween(serverCpuBefore, cpuMsOfTree(pid))), generatorCpuShare };
}

// Whoever started this one is gone.
process.once('disconnect', () => process.exit(1));
const order = programInput<Order>();
const { connectTo } = await CLIENTS[order.target.client]();
const client = await connectTo(order.target, order.concurrency);
const stopwatch = new Stopwatch();
const load = loadOf(client, stopwatch, order);
await load.begin();
const measurement = await measure(stopwatch, order);
await load.end();
await client.remove();
const result = order.kind === 'batch' ? perMessage(measurement, order.batchSize) : measurement;
process.send?.(result, () => process.exit());
