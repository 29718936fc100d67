import type { Claim } from '../../harness/claim.js';
import { publishTo } from '../../harness/load-generator.js';
import { putUnderLoad } from '../generator/generator.js';
import { MESSAGE_BYTES } from '../generator/numbered-message.js';
import { startBroker, targetOf } from '../servers/broker.server.js';
import type { Subject } from '../servers/subject.js';
import { compare } from './comparison.js';

const IN_FLIGHT = 64;
const WORK = { kind: 'single', concurrency: IN_FLIGHT, batchSize: 1, outstanding: 0 } as const;

export function single(subjects: readonly Subject[]): Claim {
  return {
    name: 'single',
    about: 'many publishes at once, each on the disk before its answer: none of those that also sync is faster, but Redis Streams perhaps',

    async measure(bench) {
      const broker = await startBroker(bench);
      const findings = await compare(bench, {
        title: `${IN_FLIGHT} in flight, ${MESSAGE_BYTES} B`,
        work: WORK,
        ours: {
          mmmq: () => publishTo(broker, bench.scale, { clients: IN_FLIGHT, messageBytes: MESSAGE_BYTES, topics: 1 }),
          'mmmq by undici': () => putUnderLoad(bench, targetOf(broker), WORK),
        },
        subjects,
        before: ['NATS JetStream', 'RabbitMQ', 'PostgreSQL', 'pg-boss', 'BullMQ', 'Kafka'],
      });
      await broker.stop();
      return findings;
    },
  };
}
