import type { Claim } from '../harness/claim.js';
import { runDiskQueue } from '../harness/disk-queue.js';
import { interleaved } from '../harness/rounds.js';
import { ratioOf, seriesOf } from '../harness/statistics.js';
import { runRecordLoop } from '../yardsticks/record-loop.js';

const MESSAGE_BYTES = 256;
const SYNC_EVERY = 2_500;

export const diskQueue: Claim = {
  name: 'disk-queue',
  about: 'a disk queue takes and gives messages about as fast as a bare loop writes and reads them, with a sync at every 2500',

  async measure(bench) {
    const { scale } = bench;
    const directory = await bench.directory();
    const common = { ...scale, directory, messageBytes: MESSAGE_BYTES, syncEvery: SYNC_EVERY, count: scale.deliveryCount };
    const results = await interleaved(scale.rounds, 'disk-queue', {
      'put, 64 producers': () => runDiskQueue({ ...common, does: 'put', producers: 64 }),
      'put, 1 producer': () => runDiskQueue({ ...common, does: 'put', producers: 1 }),
      'bare append loop': () => runRecordLoop({ ...common, does: 'append' }),
      take: () => runDiskQueue({ ...common, does: 'take', producers: 1 }),
      'bare read loop': () => runRecordLoop({ ...common, does: 'read' }),
    });
    const append = results['bare append loop'];
    const read = results['bare read loop'];
    const rows = Object.entries(results).map(([subject, rounds]) => [
      subject,
      seriesOf(rounds, ({ perSecond }) => perSecond),
      seriesOf(rounds, ({ cpuMicros }) => cpuMicros),
      ratioOf(rounds, append, ({ perSecond }) => perSecond),
      ratioOf(rounds, read, ({ perSecond }) => perSecond),
    ]);
    return {
      tables: [{ columns: ['256 B, a sync at every 2500', 'per second', 'CPU µs each', '/ append loop', '/ read loop'], rows }],
      bars: [
        {
          what: 'put, 64 producers: per second / bare append loop',
          measured: ratioOf(results['put, 64 producers'], append, ({ perSecond }) => perSecond),
          rule: { atLeast: 0.5 },
        },
        {
          what: 'take: per second / bare append loop',
          measured: ratioOf(results.take, append, ({ perSecond }) => perSecond),
          rule: { atLeast: 0.5 },
        },
      ],
    };
  },
};
