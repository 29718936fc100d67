import type { Claim } from '../../harness/claim.js';
import type { Measurement } from '../../harness/measurement.js';
import { putUnderLoad } from '../generator/generator.js';
import { MESSAGE_BYTES } from '../generator/numbered-message.js';
import { startDispatchingBroker, type DispatcherSettings } from '../servers/broker.server.js';
import type { PeerName, Subject } from '../servers/subject.js';
import { compare } from './comparison.js';

const OUTSTANDING = 1_000;
const BATCH_SIZE = 100;
/** The calls that may be under way at once, when all that is outstanding waits for its publish. */
const WORK = { kind: 'deliver', concurrency: OUTSTANDING / BATCH_SIZE, batchSize: BATCH_SIZE, outstanding: OUTSTANDING } as const;
/** The settings of the broker's dispatcher. The bars are about the first one. */
const DISPATCHERS: Readonly<Record<string, DispatcherSettings>> = {
  [`mmmq, batches of ${BATCH_SIZE}`]: { batch: { 'max-messages': BATCH_SIZE } },
  'mmmq, one by one': {},
};
const PEERS: readonly PeerName[] = ['NATS JetStream', 'RabbitMQ', 'BullMQ', 'pg-boss'];

export function delivery(subjects: readonly Subject[]): Claim {
  return {
    name: 'delivery',
    about: 'from publish to committed verdict, in order, everything synced: nobody delivers faster',

    async measure(bench) {
      const ours: Record<string, () => Promise<Measurement>> = {};
      for (const [name, settings] of Object.entries(DISPATCHERS)) {
        const target = await startDispatchingBroker(bench, settings);
        ours[name] = () => putUnderLoad(bench, target, WORK);
      }
      return compare(bench, {
        title: `${OUTSTANDING.toLocaleString('en')} outstanding, ${MESSAGE_BYTES} B, one topic`,
        work: WORK,
        ours,
        subjects: subjects.filter(({ peer }) => PEERS.includes(peer)),
        before: PEERS,
      });
    },
  };
}
