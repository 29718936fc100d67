import { connect, type ChannelModel, type ConfirmChannel, type ConsumeMessage } from 'amqplib';
import type { Client, Committed, ConnectTo } from '../generator/client.js';
import { numberedBytes, numbersIn, TOPIC } from '../generator/numbered-message.js';
import { VerdictLine } from './verdict-line.js';

const PREFETCH = 1_000;
const PERSISTENT = { persistent: true, contentType: 'application/json' };

/**
 * RabbitMQ: one confirm channel for publishes. One consumer on a connection of its own, one acknowledgement for all that have come, a hundred
 * at most. RabbitMQ answers none, so a verdict counts as committed when it is sent.
 */
class RabbitMqClient implements Client {
  private consumerConnection: ChannelModel | undefined;

  constructor(
    private readonly url: string,
    private readonly connection: ChannelModel,
    private readonly channel: ConfirmChannel,
  ) {}

  publish(number: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.channel.sendToQueue(TOPIC, numberedBytes(number), PERSISTENT, (error: Error | null) => (error ? reject(error) : resolve()));
    });
  }

  publishMany(numbers: readonly number[]): Promise<unknown> {
    return Promise.all(numbers.map((number) => this.publish(number)));
  }

  async consume(committed: Committed): Promise<void> {
    this.consumerConnection = await connect(this.url);
    const channel = await this.consumerConnection.createChannel();
    await channel.prefetch(PREFETCH);
    const line = new VerdictLine<ConsumeMessage>((last, numbers) => {
      channel.ack(last, true);
      committed(numbers);
    });
    await channel.consume(TOPIC, (message) => {
      if (message === null) throw new Error('the queue was deleted');
      line.add(message, numbersIn(message.content.toString('latin1')));
    });
  }

  async remove(): Promise<void> {
    await this.consumerConnection?.close();
    await this.channel.deleteQueue(TOPIC);
    await this.connection.close();
  }
}

export const connectTo: ConnectTo = async ({ port, isSynced }) => {
  const url = `amqp://127.0.0.1:${port}`;
  const connection = await connect(url, { noDelay: true });
  const channel = await connection.createConfirmChannel();
  await channel.deleteQueue(TOPIC);
  await channel.assertQueue(TOPIC, { durable: true, arguments: { 'x-queue-type': isSynced ? 'quorum' : 'classic' } });
  return new RabbitMqClient(url, connection, channel);
};
