import type { Pool } from 'pg';
import PgBoss from 'pg-boss';
import { numberedObject, TOPIC, type NumberedMessage } from '../generator/numbered-message.js';
import type { Client, Committed, ConnectTo } from '../generator/client.js';
import { poolOf } from './postgresql-pool.js';

const BATCH_SIZE = 100;
/** While one waits for the disk, the other goes on. */
const FETCH_LOOPS = 2;

/**
 * pg-boss: send, and insert of many. Two loops fetch a hundred jobs at a time and complete them in one statement, without the wait between
 * two looks that `work` has.
 */
class PgBossClient implements Client {
  private fetching: readonly Promise<void>[] = [];
  private isEnding = false;

  constructor(
    private readonly pool: Pool,
    private readonly boss: PgBoss,
  ) {}

  async publish(number: number): Promise<void> {
    if ((await this.boss.send(TOPIC, numberedObject(number))) === null) throw new Error('pg-boss did not take a job');
  }

  publishMany(numbers: readonly number[]): Promise<unknown> {
    return this.boss.insert(numbers.map((number) => ({ name: TOPIC, data: numberedObject(number) })));
  }

  consume(committed: Committed): Promise<void> {
    this.fetching = Array.from({ length: FETCH_LOOPS }, () => this.fetchAll(committed));
    return Promise.resolve();
  }

  async remove(): Promise<void> {
    this.isEnding = true;
    await Promise.all(this.fetching);
    await this.boss.stop({ graceful: false, wait: true });
    await this.pool.query('drop schema pgboss cascade');
    await this.pool.query('checkpoint');
    await this.pool.end();
  }

  private async fetchAll(committed: Committed): Promise<void> {
    while (!this.isEnding) {
      const jobs = await this.boss.fetch<NumberedMessage>(TOPIC, { batchSize: BATCH_SIZE });
      if (jobs.length === 0) continue;
      await this.boss.complete(
        TOPIC,
        jobs.map(({ id }) => id),
      );
      committed(jobs.map(({ data }) => Number(data.content.number)));
    }
  }
}

export const connectTo: ConnectTo = async ({ port }, concurrency) => {
  const pool = await poolOf(port, concurrency);
  // pg-boss makes its statements anew each time, and takes the connections that it is given.
  const db = { executeSql: (text: string, values: unknown[]) => pool.query(text, values) };
  const boss = new PgBoss({ db, supervise: false, schedule: false });
  boss.on('error', (error) => {
    throw error;
  });
  await boss.start();
  await boss.createQueue(TOPIC);
  return new PgBossClient(pool, boss);
};
