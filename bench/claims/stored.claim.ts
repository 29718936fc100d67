import type { Bar, Claim } from '../harness/claim.js';
import { publishTo } from '../harness/load-generator.js';
import { lookUp } from '../harness/lookup.js';
import { topicOf } from '../harness/messages.js';
import { interleaved } from '../harness/rounds.js';
import { startAnd, type Start } from '../harness/start.js';
import { ratioOf, seriesOf } from '../harness/statistics.js';
import { storeMessages } from '../harness/stored-messages.js';

const WORKLOAD = { clients: 1, messageBytes: 256, topics: 1 };
const EMPTY = 'no messages';

interface Round extends Start {
  readonly publishP50Ms: number;
  readonly lookupP50Ms: number;
}

export const stored: Claim = {
  name: 'stored',
  about: 'a start, a publish and a lookup do not depend on how many messages are stored',

  async measure(bench) {
    const { scale } = bench;
    const topic = topicOf(0);
    const roundOn = (dataDir: string) => async (): Promise<Round> => {
      const started = await startAnd(bench, dataDir, async (broker) => {
        const { p50Ms } = await publishTo(broker, scale, WORKLOAD);
        return { publishP50Ms: p50Ms };
      });
      const { p50Ms: lookupP50Ms } = await lookUp({ ...scale, dataDir, topic });
      return { ...started, lookupP50Ms };
    };

    const subjects: Record<string, () => Promise<Round>> = { [EMPTY]: roundOn(await bench.directory()) };
    for (const count of scale.storedCounts) {
      const dataDir = await bench.directory();
      await storeMessages(dataDir, topic, count, WORKLOAD.messageBytes);
      subjects[nameOf(count)] = roundOn(dataDir);
    }
    const results = await interleaved(scale.rounds, 'stored', subjects);

    const empty = results[EMPTY] ?? [];
    const rows = Object.entries(results).map(([subject, rounds]) => [
      subject,
      seriesOf(rounds, ({ startSeconds }) => startSeconds),
      seriesOf(rounds, ({ peakMemoryMb }) => peakMemoryMb),
      seriesOf(rounds, ({ publishP50Ms }) => publishP50Ms),
      ratioOf(rounds, empty, ({ publishP50Ms }) => publishP50Ms),
      seriesOf(rounds, ({ lookupP50Ms }) => lookupP50Ms),
      ratioOf(rounds, empty, ({ lookupP50Ms }) => lookupP50Ms),
    ]);
    const most = nameOf(scale.storedCounts.at(-1) ?? 0);
    const largest = results[most] ?? [];
    const bars: readonly Bar[] = [
      {
        what: `${most} stored: publish p50 of 1 client / none stored`,
        measured: ratioOf(largest, empty, ({ publishP50Ms }) => publishP50Ms),
        rule: { atMost: 1.1 },
      },
      { what: `${most} stored: start, seconds`, measured: seriesOf(largest, ({ startSeconds }) => startSeconds), rule: { atMost: 5 } },
      { what: `${most} stored: start, MB`, measured: seriesOf(largest, ({ peakMemoryMb }) => peakMemoryMb), rule: { atMost: 300 } },
    ];
    return {
      tables: [
        {
          columns: ['stored, of 256 B', 'start s', 'start MB', 'publish p50 ms', '/ none', 'lookup p50 ms', '/ none'],
          rows,
        },
      ],
      bars,
    };
  },
};

function nameOf(count: number): string {
  return `${count.toLocaleString('en')} messages`;
}
