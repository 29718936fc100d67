import { setTimeout } from 'node:timers/promises';
import { Admin, ProduceAcks, Producer } from '@platformatic/kafka';
import type { Client, ConnectTo } from '../generator/client.js';
import { numberedBytes, TOPIC } from '../generator/numbered-message.js';

/** Requests under way at once; while so many are, publishes wait together for the next one. */
const MAX_IN_FLIGHT = 2;
const POLL_EVERY_MS = 20;

interface Waiting {
  readonly number: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

type KafkaProducer = Producer<Buffer, Buffer, Buffer, Buffer>;

/**
 * Kafka: one partition, acks of all. The client library makes one request of each send, so single messages that come while others are under
 * way are put together here, as Kafka's own client does.
 */
class KafkaClient implements Client {
  private line: Waiting[] = [];
  private inFlight = 0;

  constructor(
    private readonly producer: KafkaProducer,
    private readonly admin: Admin,
  ) {}

  publish(number: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.line.push({ number, resolve, reject });
      // The others of this turn of the event loop come along.
      if (this.line.length === 1) setImmediate(() => this.sendLine());
    });
  }

  publishMany(numbers: readonly number[]): Promise<unknown> {
    const messages = numbers.map((number) => ({ topic: TOPIC, partition: 0, value: numberedBytes(number) }));
    return this.producer.send({ messages, acks: ProduceAcks.ALL });
  }

  async remove(): Promise<void> {
    await this.admin.deleteTopics({ topics: [TOPIC] });
    await this.producer.close();
    await this.admin.close();
  }

  private sendLine(): void {
    if (this.inFlight >= MAX_IN_FLIGHT || this.line.length === 0) return;
    const { line } = this;
    this.line = [];
    void this.sendTogether(line);
  }

  private async sendTogether(line: readonly Waiting[]): Promise<void> {
    this.inFlight += 1;
    try {
      await this.publishMany(line.map(({ number }) => number));
      for (const { resolve } of line) resolve();
    } catch (error) {
      for (const { reject } of line) reject(error);
    }
    this.inFlight -= 1;
    this.sendLine();
  }
}

export const connectTo: ConnectTo = async ({ port, isSynced }) => {
  const options = { clientId: 'bench', bootstrapBrokers: [`127.0.0.1:${port}`] };
  // A strict one refuses the configuration of a topic.
  const admin = new Admin(options);
  const configs = isSynced ? [{ name: 'flush.messages', value: '1' }] : [];
  await admin.createTopics({ topics: [TOPIC], partitions: 1, replicas: 1, configs });
  while (!(await hasLeader(admin))) await setTimeout(POLL_EVERY_MS);
  return new KafkaClient(new Producer({ ...options, strict: true, idempotent: false }), admin);
};

/** A new topic is known a moment before somebody leads it. */
async function hasLeader(admin: Admin): Promise<boolean> {
  const { topics } = await admin.metadata({ topics: [TOPIC], forceUpdate: true });
  return (topics.get(TOPIC)?.partitions[0]?.leader ?? -1) >= 0;
}
