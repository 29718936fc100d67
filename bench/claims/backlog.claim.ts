import { startBroker } from '../harness/broker.js';
import type { Claim } from '../harness/claim.js';
import { arrivalsPerSecond, Consumer } from '../harness/consumer.js';
import { whileDelivering } from '../harness/delivery.js';
import { publishTo } from '../harness/load-generator.js';
import type { Measurement } from '../harness/measurement.js';
import { topicOf } from '../harness/messages.js';
import { interleaved } from '../harness/rounds.js';
import { MAIN_WORKLOAD } from '../harness/scale.js';
import { ratioOf, seriesOf } from '../harness/statistics.js';
import { storeMessages } from '../harness/stored-messages.js';
import { MEASUREMENT_COLUMNS, measurementCells } from './measurement.table.js';

/** What the producers saw, and what the consumer got meanwhile. */
interface Round extends Measurement {
  readonly deliveriesPerSecond?: number;
}

export const backlog: Claim = {
  name: 'backlog',
  about: 'producers hardly notice that a dispatcher works through a backlog of the same topic',

  async measure(bench) {
    const { scale } = bench;
    const consumer = await Consumer.start(bench);
    const emptyDir = await bench.directory();
    const waiting = { dataDir: await bench.directory(), topic: topicOf(0), count: scale.backlogCount, consumer, dispatchers: 1 };
    await storeMessages(waiting.dataDir, waiting.topic, waiting.count, MAIN_WORKLOAD.messageBytes);

    const results = await interleaved<'no backlog' | 'a backlog drains', Round>(scale.rounds, '64 clients, 256 B', {
      'no backlog': async () => {
        const broker = await startBroker(bench, emptyDir);
        const measurement = await publishTo(broker, scale, MAIN_WORKLOAD);
        await broker.stop();
        return measurement;
      },
      'a backlog drains': () =>
        whileDelivering(bench, waiting, async (broker) => {
          const before = await consumer.arrivals();
          const measurement = await publishTo(broker, scale, MAIN_WORKLOAD);
          return { ...measurement, deliveriesPerSecond: arrivalsPerSecond(before, await consumer.arrivals()) };
        }),
    });
    const { 'no backlog': without, 'a backlog drains': during } = results;
    const rows = Object.entries(results).map(([subject, rounds]) => [
      subject,
      ...measurementCells(rounds),
      seriesOf(rounds, ({ deliveriesPerSecond }) => deliveriesPerSecond),
      ratioOf(rounds, without, ({ p99Ms }) => p99Ms),
    ]);
    const count = scale.backlogCount.toLocaleString('en');
    return {
      tables: [{ columns: ['64 clients, 256 B', ...MEASUREMENT_COLUMNS, 'deliveries per second', 'p99 / no backlog'], rows }],
      bars: [
        {
          what: `64 clients: publish p99 while ${count} messages drain / no backlog`,
          measured: ratioOf(during, without, ({ p99Ms }) => p99Ms),
          rule: { atMost: 3 },
        },
      ],
    };
  },
};
