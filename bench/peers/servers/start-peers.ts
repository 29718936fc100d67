import type { Workbench } from '../../harness/workbench.js';
import { MissingError } from './installed.js';
import { startKafka } from './kafka.server.js';
import { startNats } from './nats.server.js';
import { startPostgreSql } from './postgresql.server.js';
import { startRabbitMq } from './rabbitmq.server.js';
import { startRedis } from './redis.server.js';
import { PEERS, type Started } from './subject.js';

/** Each server with the names under which it is missed. */
const SERVERS: Readonly<Record<string, (bench: Workbench) => Promise<Started>>> = {
  'Redis Streams, BullMQ': startRedis,
  'NATS JetStream': startNats,
  RabbitMQ: startRabbitMq,
  'PostgreSQL, pg-boss': startPostgreSql,
  Kafka: startKafka,
};

/**
 * Starts all that is on this machine, one after the other, each as a process of the bench with its data in a directory of the bench.
 * @throws {Error} when a server that is there does not start
 */
export async function startPeers(bench: Workbench): Promise<Started> {
  const started: Started[] = [];
  for (const [name, start] of Object.entries(SERVERS)) {
    console.error(`  starting: ${name}`);
    try {
      started.push(await start(bench));
    } catch (error) {
      if (!(error instanceof MissingError)) throw error;
      started.push({ subjects: [], missing: [{ name, needs: error.needs }] });
    }
  }
  const subjects = started.flatMap((one) => one.subjects);
  return {
    subjects: PEERS.flatMap((name) => subjects.filter(({ peer }) => peer === name)),
    missing: started.flatMap(({ missing }) => missing),
  };
}
