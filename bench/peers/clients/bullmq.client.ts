import { Queue, Worker, type Job } from 'bullmq';
import type { Redis } from 'ioredis';
import { numberedObject, TOPIC, type NumberedMessage } from '../generator/numbered-message.js';
import type { Client, Committed, Target } from '../generator/client.js';
import { connectToRedis, emptied } from './redis-connection.js';

/** Jobs that one worker has under way at once. */
const WORKER_CONCURRENCY = 100;
const OPTIONS = { removeOnComplete: true };

/** BullMQ: add and addBulk; one worker. A verdict is committed when the job is completed in Redis. */
class BullMqClient implements Client {
  private readonly queue: Queue<NumberedMessage>;
  private worker: Worker<NumberedMessage, number> | undefined;

  constructor(
    private readonly redis: Redis,
    private readonly port: number,
  ) {
    this.queue = new Queue(TOPIC, { connection: redis });
  }

  publish(number: number): Promise<unknown> {
    return this.queue.add('message', numberedObject(number), OPTIONS);
  }

  publishMany(numbers: readonly number[]): Promise<unknown> {
    return this.queue.addBulk(numbers.map((number) => ({ name: 'message', data: numberedObject(number), opts: OPTIONS })));
  }

  async consume(committed: Committed): Promise<void> {
    const connection = await connectToRedis(this.port);
    const process = (job: Job<NumberedMessage>): Promise<number> => Promise.resolve(Number(job.data.content.number));
    this.worker = new Worker(TOPIC, process, { connection, concurrency: WORKER_CONCURRENCY });
    this.worker.on('completed', (_job, number) => committed([number]));
    this.worker.on('error', (error) => {
      throw error;
    });
    await this.worker.waitUntilReady();
  }

  async remove(): Promise<void> {
    await this.worker?.close(true);
    await emptied(this.redis);
    this.redis.disconnect();
  }
}

export async function connectTo({ port }: Target): Promise<Client> {
  return new BullMqClient(await connectToRedis(port), port);
}
