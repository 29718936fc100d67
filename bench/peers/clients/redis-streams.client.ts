import type { Redis } from 'ioredis';
import { TOPIC, numberedText } from '../generator/numbered-message.js';
import type { Client, Target } from '../generator/client.js';
import { connectToRedis, emptied } from './redis-connection.js';

/** Redis Streams: XADD. A batch is one MULTI … EXEC. */
class RedisStreamsClient implements Client {
  constructor(private readonly redis: Redis) {}

  publish(number: number): Promise<unknown> {
    return this.redis.xadd(TOPIC, '*', 'message', numberedText(number));
  }

  async publishMany(numbers: readonly number[]): Promise<void> {
    const transaction = this.redis.multi();
    for (const number of numbers) transaction.xadd(TOPIC, '*', 'message', numberedText(number));
    const results = await transaction.exec();
    if (results?.length !== numbers.length) throw new Error('EXEC did not add all messages of a batch');
  }

  async remove(): Promise<void> {
    await emptied(this.redis);
    this.redis.disconnect();
  }
}

export async function connectTo({ port }: Target): Promise<Client> {
  return new RedisStreamsClient(await connectToRedis(port));
}
