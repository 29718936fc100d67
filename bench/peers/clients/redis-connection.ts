import { setTimeout } from 'node:timers/promises';
import { Redis } from 'ioredis';

const POLL_EVERY_MS = 20;

/** A connection that writes the commands of one turn of the event loop together, and fails for good when it is lost. */
export async function connectToRedis(port: number): Promise<Redis> {
  const redis = new Redis({
    host: '127.0.0.1',
    port,
    enableAutoPipelining: true,
    lazyConnect: true,
    // What BullMQ demands; without a second try it is of no account.
    maxRetriesPerRequest: null,
    retryStrategy: () => null,
  });
  redis.on('error', (error) => {
    throw error;
  });
  await redis.connect();
  return redis;
}

/** Removes everything from the server, and waits until it rewrites and saves nothing any more. */
export async function emptied(redis: Redis): Promise<void> {
  await isIdle(redis);
  await redis.flushall();
  // Nothing is left to be saved after that, and so nothing is saved while others are measured.
  if ((await redis.config('GET', 'save')).toString() !== 'save,') await redis.save();
}

async function isIdle(redis: Redis): Promise<void> {
  while (/_in_progress:1/.test(await redis.info('persistence'))) await setTimeout(POLL_EVERY_MS);
}
