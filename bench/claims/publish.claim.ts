import { startBroker } from '../harness/broker.js';
import type { Bar, Claim, Table } from '../harness/claim.js';
import { publishTo, type Workload } from '../harness/load-generator.js';
import { programPath } from '../harness/program.js';
import { interleaved } from '../harness/rounds.js';
import { MAIN_WORKLOAD } from '../harness/scale.js';
import { ratioOf } from '../harness/statistics.js';
import { MEASUREMENT_COLUMNS, measurementCells } from './measurement.table.js';

export const publish: Claim = {
  name: 'publish',
  about: 'many clients get what a bare server with the same group commit gives, and a multiple of a plain Nest controller',

  async measure(bench) {
    const { scale } = bench;
    const broker = await startBroker(bench, await bench.directory());
    const groupCommit = await bench.serve(programPath('yardsticks', 'group-commit'), { input: await bench.directory() });
    const nestController = await bench.serve(programPath('yardsticks', 'nest-controller'), { input: await bench.directory() });
    const bareHttp = await bench.serve(programPath('yardsticks', 'bare-http'));

    const tables: Table[] = [];
    const bars: Bar[] = [];
    for (const workload of scale.workloads) {
      const title = titleOf(workload);
      const results = await interleaved(scale.rounds, title, {
        broker: () => publishTo(broker, scale, workload),
        'G, http + group commit': () => publishTo(groupCommit, scale, workload),
        'plain Nest controller': () => publishTo(nestController, scale, workload, '/plain-messages'),
        'H, http alone': () => publishTo(bareHttp, scale, workload),
      });
      const { broker: ours, 'G, http + group commit': bare, 'plain Nest controller': plain, 'H, http alone': http } = results;
      tables.push({
        columns: [title, ...MEASUREMENT_COLUMNS, 'broker / this'],
        rows: Object.entries(results).map(([subject, rounds]) => [
          subject,
          ...measurementCells(rounds),
          ratioOf(ours, rounds, ({ perSecond }) => perSecond),
        ]),
      });
      if (workload !== MAIN_WORKLOAD) continue;
      bars.push(
        { what: `${title}: per second / G`, measured: ratioOf(ours, bare, ({ perSecond }) => perSecond), rule: { atLeast: 0.8 } },
        { what: `${title}: per second / plain Nest`, measured: ratioOf(ours, plain, ({ perSecond }) => perSecond), rule: { atLeast: 4 } },
        { what: `${title}: CPU of the server / G`, measured: ratioOf(ours, bare, ({ cpuMicros }) => cpuMicros), rule: { atMost: 1.5 } },
        {
          what: `${title}: H / broker, what the generator could do`,
          measured: ratioOf(http, ours, ({ perSecond }) => perSecond),
          rule: { atLeast: 1.2 },
        },
      );
    }
    return { tables, bars };
  },
};

function titleOf({ clients, messageBytes, topics }: Workload): string {
  return `${clients} clients, ${messageBytes} B, ${topics === 1 ? '1 topic' : `${topics} topics`}`;
}
