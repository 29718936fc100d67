import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Table } from '../../harness/claim.js';
import { MAX_CONNECTIONS } from './max-connections.js';

/** bench/peers/package.json, from bench/peers/dist/peers/clients. */
const MANIFEST = join(import.meta.dirname, '../../../package.json');

interface Description {
  readonly libraries: readonly string[];
  readonly settings: string;
}

const POOL = `pool of up to ${MAX_CONNECTIONS} connections`;

const DESCRIPTIONS: Readonly<Record<string, Description>> = {
  mmmq: { libraries: [], settings: 'raw sockets, requests made beforehand, a connection for each publish under way; batch: NDJSON' },
  'mmmq by undici': { libraries: [], settings: 'the undici of the package, a connection for each publish under way; batch: NDJSON' },
  'Redis Streams': { libraries: ['ioredis'], settings: 'one connection, automatic pipelining; batch: one MULTI of XADD' },
  'NATS JetStream': {
    libraries: ['@nats-io/jetstream'],
    settings: 'one connection; batch: all publishes at once; delivery: one pull consumer, one answered ack for up to 100',
  },
  RabbitMQ: {
    libraries: ['amqplib'],
    settings: 'one confirm channel; batch: all publishes at once; delivery: one consumer, prefetch 1,000, one ack for up to 100',
  },
  PostgreSQL: { libraries: ['pg'], settings: `${POOL}, prepared insert; batch: one insert of many rows` },
  'pg-boss': { libraries: ['pg-boss', 'pg'], settings: `${POOL}; batch: insert; delivery: two loops of fetch 100, complete 100` },
  BullMQ: { libraries: ['bullmq', 'ioredis'], settings: 'one connection; batch: addBulk; delivery: one worker, 100 jobs at once' },
  Kafka: {
    libraries: ['@platformatic/kafka'],
    settings: 'acks of all, up to 2 requests under way, what waits meanwhile goes together; batch: one request',
  },
};

/** How each peer is used, with the versions of the client libraries. */
export function clientTable(): Table {
  const { dependencies } = JSON.parse(readFileSync(MANIFEST, 'utf8')) as { readonly dependencies: Readonly<Record<string, string>> };
  const withVersion = (library: string): string => `${library} ${dependencies[library]}`;
  return {
    columns: ['client of', 'library', 'how it is used'],
    rows: Object.entries(DESCRIPTIONS).map(([name, { libraries, settings }]) => [
      name,
      libraries.map(withVersion).join(', ') || '–',
      settings,
    ]),
  };
}
