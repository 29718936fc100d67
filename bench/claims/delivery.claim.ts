import type { Claim } from '../harness/claim.js';
import { Consumer } from '../harness/consumer.js';
import { deliveryOf, whileDelivering, type Delivery } from '../harness/delivery.js';
import { topicOf } from '../harness/messages.js';
import { interleaved } from '../harness/rounds.js';
import { ratioOf, seriesOf } from '../harness/statistics.js';
import { storeMessages } from '../harness/stored-messages.js';
import { runDeliveryLoop } from '../yardsticks/delivery-loop.js';

const MESSAGE_BYTES = 256;
const IN_BATCHES = 100;

export const delivery: Claim = {
  name: 'delivery',
  about:
    'a dispatcher keeps up with a bare loop of POST and synced checkpoint, ten dispatchers together deliver a multiple of one, and so does one in batches',

  async measure(bench) {
    const { scale } = bench;
    const consumer = await Consumer.start(bench);
    const directory = await bench.directory();
    const deliverTo = async (dispatchers: number, count: number, batch = {}): Promise<() => Promise<Delivery>> => {
      const backlog = { dataDir: await bench.directory(), topic: topicOf(0), count, consumer, dispatchers, ...batch };
      await storeMessages(backlog.dataDir, backlog.topic, backlog.count, MESSAGE_BYTES);
      return () => whileDelivering(bench, backlog, (broker) => deliveryOf(bench, broker, consumer));
    };
    const bareLoop = async (): Promise<Delivery> => {
      const { perSecond, cpuMicros } = await runDeliveryLoop({
        ...scale,
        directory,
        consumerUrl: consumer.url,
        messageBytes: MESSAGE_BYTES,
      });
      return { perSecond, cpuMicros, consumerCpuShare: undefined };
    };

    const results = await interleaved(scale.rounds, 'delivery', {
      '1 dispatcher': await deliverTo(1, scale.deliveryCount),
      '10 dispatchers': await deliverTo(10, scale.deliveryCount),
      '1 in batches of 100': await deliverTo(1, scale.backlogCount, { batchMaxMessages: IN_BATCHES }),
      'bare loop': bareLoop,
    });
    const { '1 dispatcher': one, '10 dispatchers': ten, '1 in batches of 100': batches, 'bare loop': bare } = results;
    const rows = Object.entries(results).map(([subject, rounds]) => [
      subject,
      seriesOf(rounds, ({ perSecond }) => perSecond),
      seriesOf(rounds, ({ cpuMicros }) => cpuMicros),
      seriesOf(rounds, ({ consumerCpuShare }) => consumerCpuShare),
      ratioOf(one, rounds, ({ perSecond }) => perSecond),
    ]);
    return {
      tables: [{ columns: ['one topic, 256 B', 'per second', 'CPU µs each', 'consumer, cores', '1 dispatcher / this'], rows }],
      bars: [
        {
          what: '1 dispatcher: per second / bare loop',
          measured: ratioOf(one, bare, ({ perSecond }) => perSecond),
          rule: { atLeast: 0.6 },
        },
        { what: '10 dispatchers together / 1 dispatcher', measured: ratioOf(ten, one, ({ perSecond }) => perSecond), rule: { atLeast: 3 } },
        {
          what: '1 dispatcher in batches of 100 / 1 dispatcher',
          measured: ratioOf(batches, one, ({ perSecond }) => perSecond),
          rule: { atLeast: 5 },
        },
      ],
    };
  },
};
