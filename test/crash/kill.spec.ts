import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { BrokerProcess } from '../support/broker-process.js';
import { fileEngine, readAll } from '../support/file-engine.js';
import { ack, TestConsumer } from '../support/test-consumer.js';
import { temporaryDirectories } from '../support/temporary-directory.js';

/** `MMMQ_KILL_ROUNDS=300 npm run jest -- test/crash/kill` for a longer run. */
const ROUNDS = Number(process.env['MMMQ_KILL_ROUNDS'] ?? 20);
const PRODUCERS = 8;
const TOPICS = ['order.created', 'order.paid', 'payment.done'];
/** A broker lives so long under load before it is killed, at random. */
const MAX_LIFE_MS = 600;

const newDirectory = temporaryDirectories();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** What the producers know: every ACK, and by topic what it was for. */
class Acknowledged {
  readonly contents = new Map<string, Map<number, string>>(TOPICS.map((topic) => [topic, new Map()]));
  count = 0;

  add(topic: string, offset: number, content: string): void {
    const known = this.contents.get(topic);
    if (known === undefined || known.has(offset)) throw new Error(`offset ${offset} of ${topic} was acknowledged twice`);
    known.set(offset, content);
    this.count += 1;
  }
}

/** Publishes one message after the other until the broker is gone. */
async function produce(broker: BrokerProcess, producer: string, acknowledged: Acknowledged): Promise<void> {
  for (let number = 0; ; number += 1) {
    const topic = TOPICS[number % TOPICS.length] ?? '';
    const content = JSON.stringify({ producer, number, filler: 'x'.repeat((number * 37) % 700) });
    try {
      const response = await broker.publish(`{"topic":"${topic}","content":${content}}`);
      const receipt = (await response.json()) as { acknowledgement: string; topic: string; offset: number };
      if (response.status === 200 && receipt.acknowledgement === 'ACK') acknowledged.add(receipt.topic, receipt.offset, content);
    } catch {
      return;
    }
  }
}

const contentOf = (stored: string): string => /^\{"topic":"[^"]+","content":(.*),"timestamp":\d+\}$/.exec(stored)?.[1] ?? '';

describe('a broker that is killed', () => {
  it(
    `has every acknowledged message in its place after each of ${ROUNDS} kills under load, and delivers all of them in order`,
    async () => {
      const cwd = await newDirectory();
      const firsts = new Map<string, Map<number, string>>(TOPICS.map((topic) => [topic, new Map()]));
      const consumer = await TestConsumer.start((delivery, response) => {
        const first = firsts.get(delivery.topic);
        if (first !== undefined && !first.has(delivery.offset)) first.set(delivery.offset, contentOf(delivery.body));
        ack(delivery, response);
      });
      stops.push(() => consumer.stop());
      const config = [
        'mmmq:',
        '  broker: { segment: { max-bytes: 20000 } }',
        '  dispatchers:',
        `    - { name: all, host: '${consumer.url}', patterns: ['**'], backoff: { initial-ms: 10, max-ms: 50 } }`,
      ].join('\n');
      const acknowledged = new Acknowledged();

      for (let round = 0; round < ROUNDS; round += 1) {
        const broker = await BrokerProcess.start({ cwd, config });
        const producers = Array.from({ length: PRODUCERS }, (_, index) => produce(broker, `${round}-${index}`, acknowledged));
        // Not a wait for a condition: the moment of the kill is what is drawn at random.
        await sleep(Math.random() * MAX_LIFE_MS);
        await broker.end('SIGKILL');
        await Promise.all(producers);

        const { engine } = fileEngine(join(cwd, 'data'), { segmentMaxBytes: 20_000 });
        for (const log of await engine.open()) {
          const entries = await readAll(log, 0, { maxCount: 500, maxBytes: 1_000_000 });
          for (const [offset, content] of acknowledged.contents.get(log.topic) ?? []) {
            expect([round, log.topic, offset, contentOf(entries[offset]?.payload?.toString() ?? '')]).toEqual([
              round,
              log.topic,
              offset,
              content,
            ]);
          }
        }
        await engine.close();
      }

      const broker = await BrokerProcess.start({ cwd, config });
      stops.push(() => broker.end('SIGKILL'));
      const lastAcknowledged = (topic: string): number => Math.max(-1, ...(acknowledged.contents.get(topic)?.keys() ?? []));
      const expected = new Map(TOPICS.map((topic) => [topic, lastAcknowledged(topic) + 1]));
      await consumer.until(() => TOPICS.every((topic) => (firsts.get(topic)?.size ?? 0) >= (expected.get(topic) ?? 0)));
      expect(await broker.end('SIGTERM')).toEqual({ code: 0, signal: null });
      stops.pop();

      for (const topic of TOPICS) {
        const delivered = firsts.get(topic) ?? new Map<number, string>();
        // First deliveries come in the order of the offsets, without a gap.
        expect([...delivered.keys()]).toEqual(Array.from({ length: delivered.size }, (_, offset) => offset));
        for (const [offset, content] of acknowledged.contents.get(topic) ?? []) expect(delivered.get(offset)).toBe(content);
      }
      expect(acknowledged.count).toBeGreaterThan(ROUNDS);
      console.log(`kill test: ${ROUNDS} rounds, ${acknowledged.count} acknowledged, ${consumer.received.length} deliveries`);
    },
    60_000 + ROUNDS * 10_000,
  );
});
