import { isDeadLetterTopic } from '../../src/core/index.js';
import type { ConsumerBehaviour, SimulatedBroker } from './simulated-broker.js';

/** What a broker is put to while its disk fails. */
export interface Workload {
  readonly name: string;
  readonly segmentMaxBytes: number;
  readonly reserveBytes?: number;
  /** Its messages have ids, and are sent again later. */
  readonly hasIds?: boolean;
  readonly dispatchers: readonly string[];
  /** So many messages in a request at most; each alone where it is left out. */
  readonly batchMaxMessages?: number;
  readonly consumer: ConsumerBehaviour;
  /** Ends when every producer has its answers. What a producer is refused it does not send again, unless the message has an id. */
  run(broker: SimulatedBroker): Promise<void>;
  /** What the next process is put to, where the first one ends in good order and another one is started. */
  runAgain?(broker: SimulatedBroker): Promise<void>;
}

const LARGE_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Room for the dead letters of a few messages. */
const RESERVE_BYTES = 8 * 1024;
/** More than the waits of all resends. */
const LONG_MS = 5_000;
const ACK_ALL: ConsumerBehaviour = () => 'ack';
/** A consumer that does everything that a consumer does. */
const MOODY: ConsumerBehaviour = (offset, attempt) => {
  switch (offset % 5) {
    case 1:
      return attempt === 1 ? 'nack' : 'ack';
    case 2:
      return 'reject';
    case 3:
      return attempt === 1 ? 'vanish' : 'ack';
    case 4:
      return 'nack';
    default:
      return 'ack';
  }
};

/** The same for batches of four, so that each of it comes at the beginning of one and in the middle. */
const MOODY_WITH_BATCHES: ConsumerBehaviour = (offset, attempt) => {
  switch (offset % 10) {
    case 1:
      return attempt === 1 ? 'nack' : 'ack';
    case 4:
      return 'reject';
    case 0:
    case 3:
    case 6:
      return attempt === 1 ? 'vanish' : 'ack';
    case 8:
      return 'nack';
    default:
      return 'ack';
  }
};

/** Lengths that put entries on every side of a sector's border. */
function padding(number: number): string {
  return 'x'.repeat(number % 11 === 7 ? 700 : (number * 37) % 160);
}

async function produce(broker: SimulatedBroker, topic: string, producer: number, count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    // Not all in step: some come while a pass is under way.
    for (let turns = (producer * 5 + number * 3) % 11; turns > 0; turns -= 1) await undefined;
    await broker.publish({ topic, content: { producer, number, padding: padding(producer * 7 + number) } });
  }
}

function producers(broker: SimulatedBroker, topics: readonly string[], producerCount: number, messagesEach: number): Promise<unknown> {
  return Promise.all(
    Array.from({ length: producerCount }, (_, producer) => produce(broker, topics[producer % topics.length] ?? '', producer, messagesEach)),
  );
}

const plain = { segmentMaxBytes: LARGE_SEGMENT_BYTES, dispatchers: [], consumer: ACK_ALL };

export const WORKLOADS: readonly Workload[] = [
  {
    ...plain,
    name: 'one producer, one topic',
    run: async (broker) => {
      await produce(broker, 'order.created', 0, 9);
    },
  },
  {
    ...plain,
    name: 'one producer, three topics',
    run: async (broker) => {
      for (let number = 0; number < 3; number += 1) {
        for (const [producer, topic] of ['order.created', 'order.paid', 'news'].entries()) {
          await broker.publish({ topic, content: { producer, number, padding: padding(producer * 5 + number) } });
        }
      }
    },
  },
  {
    ...plain,
    name: 'eight producers, one topic',
    run: async (broker) => {
      await producers(broker, ['order.created'], 8, 5);
    },
  },
  {
    ...plain,
    name: 'eight producers, three topics',
    run: async (broker) => {
      await producers(broker, ['order.created', 'order.paid', 'news'], 8, 4);
    },
  },
  {
    ...plain,
    name: 'sixty-four producers, one topic',
    run: async (broker) => {
      // So that the records of a pass do not begin where a sector of the index does.
      await produce(broker, 'order.created', 64, 5);
      await producers(broker, ['order.created'], 64, 3);
    },
  },
  {
    ...plain,
    name: 'sixty-four producers, four topics',
    run: async (broker) => {
      await produce(broker, 'order.created', 64, 2);
      await producers(broker, ['order.created', 'order.paid', 'news', 'stock'], 64, 2);
    },
  },
  {
    ...plain,
    name: 'rotation',
    segmentMaxBytes: 500,
    run: async (broker) => {
      await producers(broker, ['order.created'], 8, 4);
    },
  },
  {
    ...plain,
    name: 'first messages of new topics',
    dispatchers: ['audit'],
    run: async (broker) => {
      broker.dispatch();
      for (const topic of ['a', 'b.c', 'd']) await produce(broker, topic, 0, 1);
      await Promise.all(['e', 'f', 'e'].map((topic, producer) => produce(broker, topic, producer, 1)));
    },
  },
  {
    ...plain,
    name: 'dispatching',
    segmentMaxBytes: 700,
    dispatchers: ['orders', 'audit'],
    consumer: MOODY,
    run: async (broker) => {
      broker.dispatch();
      await producers(broker, ['order.created'], 2, 4);
    },
  },
  {
    ...plain,
    name: 'dispatching in batches',
    segmentMaxBytes: 700,
    dispatchers: ['orders'],
    batchMaxMessages: 4,
    consumer: MOODY_WITH_BATCHES,
    run: async (broker) => {
      await producers(broker, ['order.created'], 2, 3);
      broker.dispatch();
      await producers(broker, ['order.created'], 2, 2);
    },
  },
  {
    ...plain,
    name: 'idempotent resend',
    hasIds: true,
    run: async (broker) => {
      await Promise.all(
        Array.from({ length: 6 }, async (_, producer) => {
          for (let number = 0; number < 3; number += 1) await publishWithId(broker, producer % 4, number);
        }),
      );
      await resend(broker);
    },
  },
  {
    ...plain,
    name: 'a restart in good order',
    segmentMaxBytes: 700,
    dispatchers: ['audit'],
    run: async (broker) => {
      broker.dispatch();
      for (const [producer, topic] of ['order.created', 'order.paid', 'news'].entries()) await produce(broker, topic, producer, 3);
    },
    // One topic is as the first process left it, one grows, one begins a new segment, and one is new.
    runAgain: async (broker) => {
      await produce(broker, 'order.created', 4, 1);
      await produce(broker, 'order.paid', 7, 5);
      broker.dispatch();
      await produce(broker, 'stock', 5, 2);
    },
  },
  {
    ...plain,
    name: 'a full disk, with dead letters',
    segmentMaxBytes: 1500,
    dispatchers: ['orders', 'audit'],
    consumer: MOODY,
    reserveBytes: RESERVE_BYTES,
    run: async (broker) => {
      await produce(broker, 'order.created', 0, 5);
      // Room for another message, and a part of one: the checkpoints and dead letters of the five take the reserve.
      broker.limitRoom(700);
      broker.dispatch();
      await producers(broker, ['order.created', 'order.paid', 'news'], 6, 2);
      await broker.pause(LONG_MS);
      broker.assertAllDelivered();
      broker.limitRoom(Number.POSITIVE_INFINITY);
      await produce(broker, 'order.created', 7, 2);
    },
  },
];

/** Two producers of six share the ids of two others. */
function publishWithId(broker: SimulatedBroker, producer: number, number: number): Promise<boolean> {
  const content = { producer, number, padding: padding(number) };
  return broker.publish({ topic: 'order.created', id: `${producer}-${number}`, content });
}

/** Sends everything that has an id once more, as a producer does that does not know what became of it. */
export async function resend(broker: SimulatedBroker): Promise<void> {
  for (let producer = 0; producer < 4; producer += 1) {
    for (let number = 0; number < 3; number += 1) await publishWithId(broker, producer, number);
  }
}

/**
 * A broker that was recovered is used on: each of its topics, or a new one as well, as the making of a topic syncs what the recovery may have
 * forgotten to.
 * @param run tells the messages from those of other runs
 */
export async function useOn(broker: SimulatedBroker, run: number, withNewTopic: boolean): Promise<void> {
  const found = broker.topics.filter((topic) => !isDeadLetterTopic(topic));
  const topics = withNewTopic || found.length === 0 ? [...new Set([...found, 'used.on'])] : found;
  await Promise.all(
    topics.flatMap((topic) => [1, 2].map((number) => broker.publish({ topic, content: { run, number, padding: padding(number) } }))),
  );
}
