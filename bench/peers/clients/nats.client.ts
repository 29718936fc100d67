import { AckPolicy, jetstream, jetstreamManager, RetentionPolicy, StorageType, type JetStreamClient, type JsMsg } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import type { Client, Committed, Target } from '../generator/client.js';
import { numberedBytes, numbersIn, TOPIC } from '../generator/numbered-message.js';
import { VerdictLine } from './verdict-line.js';

const STREAM = 'bench';
const CONSUMER = 'bench-0';
const MAX_UNACKNOWLEDGED = 1_000;

/**
 * NATS JetStream: one stream in a file. One pull consumer, one acknowledgement for all that have come, a hundred at most, and the server's
 * answer to it.
 */
class NatsClient implements Client {
  private readonly jetstream: JetStreamClient;

  constructor(private readonly connection: NatsConnection) {
    this.jetstream = jetstream(connection);
  }

  publish(number: number): Promise<unknown> {
    return this.jetstream.publish(TOPIC, numberedBytes(number));
  }

  publishMany(numbers: readonly number[]): Promise<unknown> {
    return Promise.all(numbers.map((number) => this.publish(number)));
  }

  async consume(committed: Committed): Promise<void> {
    const manager = await jetstreamManager(this.connection);
    const settings = { durable_name: CONSUMER, ack_policy: AckPolicy.All, max_ack_pending: MAX_UNACKNOWLEDGED };
    await manager.consumers.add(STREAM, settings);
    const consumer = await this.jetstream.consumers.get(STREAM, CONSUMER);
    const line = new VerdictLine<JsMsg>(async (last, numbers) => {
      if (!(await last.ackAck())) throw new Error('an acknowledgement was not confirmed');
      committed(numbers);
    });
    await consumer.consume({
      max_messages: MAX_UNACKNOWLEDGED,
      callback: (message) => line.add(message, numbersIn(message.string())),
    });
  }

  async remove(): Promise<void> {
    const manager = await jetstreamManager(this.connection);
    await manager.streams.delete(STREAM);
    await this.connection.close();
  }
}

export async function connectTo({ port }: Target): Promise<Client> {
  const connection = await connect({ port, reconnect: false });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: STREAM, subjects: [TOPIC], storage: StorageType.File, retention: RetentionPolicy.Limits });
  return new NatsClient(connection);
}
