import { startBroker } from '../harness/broker.js';
import type { Bar, Claim, Table } from '../harness/claim.js';
import { publishTo } from '../harness/load-generator.js';
import { programPath } from '../harness/program.js';
import { interleaved } from '../harness/rounds.js';
import { ratioOf } from '../harness/statistics.js';
import { runAppendLoop } from '../yardsticks/append-loop.js';
import { MEASUREMENT_COLUMNS, measurementCells } from './measurement.table.js';

export const latency: Claim = {
  name: 'latency',
  about: 'one client waits little longer for its ACK than the disk takes',

  async measure(bench) {
    const { scale } = bench;
    const broker = await startBroker(bench, await bench.directory());
    const groupCommit = await bench.serve(programPath('yardsticks', 'group-commit'), { input: await bench.directory() });
    const bareHttp = await bench.serve(programPath('yardsticks', 'bare-http'));
    const directory = await bench.directory();

    const tables: Table[] = [];
    const bars: Bar[] = [];
    for (const messageBytes of [256, 1_024]) {
      const workload = { clients: 1, messageBytes, topics: 1 };
      const title = `1 client, ${messageBytes} B`;
      const results = await interleaved(scale.rounds, title, {
        broker: () => publishTo(broker, scale, workload),
        'L, one file': () => runAppendLoop({ ...scale, directory, files: 1, messageBytes }),
        'L, two files': () => runAppendLoop({ ...scale, directory, files: 2, messageBytes }),
        'G, http + group commit': () => publishTo(groupCommit, scale, workload),
        'H, http alone': () => publishTo(bareHttp, scale, workload),
      });
      tables.push({
        columns: [title, ...MEASUREMENT_COLUMNS, 'broker p50 / this'],
        rows: Object.entries(results).map(([subject, rounds]) => [
          subject,
          ...measurementCells(rounds),
          ratioOf(results.broker, rounds, ({ p50Ms }) => p50Ms),
        ]),
      });
      bars.push({
        what: `${title}: publish p50 / L on two files`,
        measured: ratioOf(results.broker, results['L, two files'], ({ p50Ms }) => p50Ms),
        rule: { atMost: 1.6 },
      });
    }
    return { tables, bars };
  },
};
