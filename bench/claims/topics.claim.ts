import type { Claim } from '../harness/claim.js';
import { topicOf } from '../harness/messages.js';
import { interleaved } from '../harness/rounds.js';
import type { ServerProcess } from '../harness/server-process.js';
import { startAnd, type Start } from '../harness/start.js';
import { ratioOf, seriesOf } from '../harness/statistics.js';
import { storeMessages } from '../harness/stored-messages.js';

const TOPICS_AT_A_TIME = 16;

export const topics: Claim = {
  name: 'topics',
  about: 'a start with very many topics is quick and takes little memory',

  async measure(bench) {
    const { rounds, topicCount } = bench.scale;
    const emptyDir = await bench.directory();
    const fullDir = await bench.directory();
    await storeTopics(fullDir, topicCount);
    const startOn = (dataDir: string) => (): Promise<Start> => startAnd(bench, dataDir, async () => ({}));
    const startBehindKill = async (): Promise<Start> => {
      await startAnd(bench, fullDir, async (broker) => {
        await publishToEach(broker, topicCount);
        await broker.stop('SIGKILL');
        return {};
      });
      return startOn(fullDir)();
    };
    const results = await interleaved(rounds, 'topics', { none: startOn(emptyDir), many: startOn(fullDir), killed: startBehindKill });

    const name = topicCount.toLocaleString('en');
    const killed = `${name}, killed behind a message to each`;
    const names: Readonly<Record<string, string>> = { many: `${name}, stopped`, killed };
    const rows = Object.entries(results).map(([subject, starts]) => [
      names[subject] ?? subject,
      seriesOf(starts, ({ startSeconds }) => startSeconds),
      ratioOf(starts, results.none, ({ startSeconds }) => startSeconds),
      seriesOf(starts, ({ peakMemoryMb }) => peakMemoryMb),
      ratioOf(starts, results.none, ({ peakMemoryMb }) => peakMemoryMb),
    ]);
    return {
      tables: [{ columns: ['topics', 'start s', '/ none', 'start MB', '/ none'], rows }],
      bars: [
        {
          what: `${name} topics: start, seconds`,
          measured: seriesOf(results.many, ({ startSeconds }) => startSeconds),
          rule: { atMost: 5 },
        },
        { what: `${name} topics: start, MB`, measured: seriesOf(results.many, ({ peakMemoryMb }) => peakMemoryMb), rule: { atMost: 300 } },
        {
          what: `${killed}: start, seconds`,
          measured: seriesOf(results.killed, ({ startSeconds }) => startSeconds),
          rule: { atMost: 5 },
        },
        { what: `${killed}: start, MB`, measured: seriesOf(results.killed, ({ peakMemoryMb }) => peakMemoryMb), rule: { atMost: 300 } },
      ],
    };
  },
};

/** In one batch: its default size is as large. */
async function publishToEach(broker: ServerProcess, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, index) => JSON.stringify({ topic: topicOf(index), content: { index } }));
  const response = await fetch(`${broker.url}/messages/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: lines.join('\n'),
  });
  if (response.status !== 200) throw new Error(`a batch to every topic was answered ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
}

async function storeTopics(dataDir: string, count: number): Promise<void> {
  for (let first = 0; first < count; first += TOPICS_AT_A_TIME) {
    const indexes = Array.from({ length: Math.min(TOPICS_AT_A_TIME, count - first) }, (_, index) => first + index);
    await Promise.all(indexes.map((index) => storeMessages(dataDir, topicOf(index), 1, 256)));
  }
}
