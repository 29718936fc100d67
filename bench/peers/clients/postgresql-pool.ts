import { Pool } from 'pg';
import { MAX_CONNECTIONS } from './max-connections.js';

/** @returns a pool of connections that are all open */
export async function poolOf(port: number, concurrency: number): Promise<Pool> {
  const max = Math.min(concurrency, MAX_CONNECTIONS);
  const pool = new Pool({ host: '127.0.0.1', port, user: 'bench', database: 'postgres', max, idleTimeoutMillis: 0 });
  const connections = await Promise.all(Array.from({ length: max }, () => pool.connect()));
  for (const connection of connections) connection.release();
  return pool;
}
