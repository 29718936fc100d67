import type { Claim } from '../../harness/claim.js';
import { publishTo } from '../../harness/load-generator.js';
import { putUnderLoad } from '../generator/generator.js';
import { MESSAGE_BYTES } from '../generator/numbered-message.js';
import { perMessage } from '../generator/per-message.js';
import { startBroker, targetOf } from '../servers/broker.server.js';
import type { Subject } from '../servers/subject.js';
import { compare } from './comparison.js';

const BATCH_SIZE = 500;
const BATCHES_IN_FLIGHT = 4;
const WORK = { kind: 'batch', concurrency: BATCHES_IN_FLIGHT, batchSize: BATCH_SIZE, outstanding: 0 } as const;

export function batch(subjects: readonly Subject[]): Claim {
  return {
    name: 'batch',
    about: 'many messages in one call, all on the disk before its answer: none of those that also sync is faster',

    async measure(bench) {
      const broker = await startBroker(bench);
      const workload = { clients: BATCHES_IN_FLIGHT, messageBytes: MESSAGE_BYTES, topics: 1, messagesPerRequest: BATCH_SIZE };
      const findings = await compare(bench, {
        title: `${BATCHES_IN_FLIGHT} batches of ${BATCH_SIZE} × ${MESSAGE_BYTES} B in flight`,
        work: WORK,
        ours: {
          mmmq: async () => perMessage(await publishTo(broker, bench.scale, workload, '/messages/batch'), BATCH_SIZE),
          'mmmq by undici': () => putUnderLoad(bench, targetOf(broker), WORK),
        },
        subjects,
        before: ['Redis Streams', 'NATS JetStream', 'RabbitMQ', 'PostgreSQL', 'pg-boss', 'BullMQ', 'Kafka'],
      });
      await broker.stop();
      return findings;
    },
  };
}
