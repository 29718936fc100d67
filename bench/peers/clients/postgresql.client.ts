import type { Pool } from 'pg';
import type { Client, ConnectTo } from '../generator/client.js';
import { numberedText, TOPIC } from '../generator/numbered-message.js';
import { poolOf } from './postgresql-pool.js';

const TABLE = `create table message (id bigint generated always as identity primary key, topic text not null, body text not null)`;
const INSERT = { name: 'publish', text: 'insert into message (topic, body) values ($1, $2)' };
const INSERT_MANY = { name: 'publish-many', text: 'insert into message (topic, body) select $1, unnest($2::text[])' };

/** PostgreSQL: an insert of one row, or of many, each a transaction of its own; a pool of connections, prepared statements. */
class PostgreSqlClient implements Client {
  constructor(private readonly pool: Pool) {}

  publish(number: number): Promise<unknown> {
    return this.pool.query({ ...INSERT, values: [TOPIC, numberedText(number)] });
  }

  publishMany(numbers: readonly number[]): Promise<unknown> {
    return this.pool.query({ ...INSERT_MANY, values: [TOPIC, numbers.map(numberedText)] });
  }

  async remove(): Promise<void> {
    await this.pool.query('drop table message');
    // Otherwise it would come by itself, while others are measured.
    await this.pool.query('checkpoint');
    await this.pool.end();
  }
}

export const connectTo: ConnectTo = async ({ port }, concurrency) => {
  const pool = await poolOf(port, concurrency);
  await pool.query(TABLE);
  return new PostgreSqlClient(pool);
};
