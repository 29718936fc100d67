import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { brokerProcesses, type BrokerProcess } from '../support/broker-process.js';
import { fileEngine, readAll } from '../support/file-engine.js';
import { answer, TestConsumer } from '../support/test-consumer.js';
import { temporaryDirectories } from '../support/temporary-directory.js';

/** `MMMQ_KILL_ROUNDS=1000 npm run jest -- test/crash/kill` for a longer run. */
const ROUNDS = Number(process.env['MMMQ_KILL_ROUNDS'] ?? 20);
/** Each round looks at the whole log: after so many a new one is begun. */
const ROUNDS_PER_LOG = 100;
const SERIES = Array.from({ length: Math.ceil(ROUNDS / ROUNDS_PER_LOG) }, (_, index) => ({
  series: index + 1,
  rounds: Math.min(ROUNDS_PER_LOG, ROUNDS - index * ROUNDS_PER_LOG),
}));
const PRODUCERS = 8;
const TOPICS = ['order.created', 'order.paid', 'payment.done'];
const SEGMENT_MAX_BYTES = 20_000;
/** A broker is killed after so many ACKs at most, and after so long at most behind the last of them, both drawn at random. */
const MAX_ACKS = 200;
const MAX_DELAY_MS = 4;

const brokers = brokerProcesses();
const newDirectory = temporaryDirectories();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** What is published, byte for byte, and so what stands in the log but for its time stamp. */
interface Published {
  readonly topic: string;
  readonly id: string | undefined;
  readonly body: string;
}

/** What all producers together know: every ACK, and what it was for. */
class Acknowledged {
  count = 0;
  private readonly byTopic = new Map<string, Map<number, Published>>(TOPICS.map((topic) => [topic, new Map()]));
  private readonly nextOffsets = new Map<string, number>();
  private readonly waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  /** @throws {Error} when the ACK cannot be true */
  add(message: Published, receipt: { readonly topic: string; readonly offset: number }): void {
    const known = this.byTopic.get(message.topic);
    const text = `${message.body} was acknowledged with ${JSON.stringify(receipt)}`;
    if (receipt.topic !== message.topic || !Number.isSafeInteger(receipt.offset)) throw new Error(text);
    if (known?.has(receipt.offset)) throw new Error(`${text}, and so was ${known.get(receipt.offset)?.body}`);
    known?.set(receipt.offset, message);
    this.nextOffsets.set(message.topic, Math.max(this.nextOffset(message.topic), receipt.offset + 1));
    this.count += 1;
    for (const { count, resolve } of this.waiting) if (this.count >= count) resolve();
  }

  of(topic: string): ReadonlyMap<number, Published> {
    return this.byTopic.get(topic) ?? new Map();
  }

  /** The offset behind the last one that was acknowledged. */
  nextOffset(topic: string): number {
    return this.nextOffsets.get(topic) ?? 0;
  }

  /** Waits until there are so many ACKs. */
  reaches(count: number): Promise<void> {
    return new Promise((resolve) => this.waiting.push({ count, resolve }));
  }
}

/** Publishes one message after the other. Every second one has an id, and such a one is sent until the outcome is known. */
class Producer {
  resends = 0;
  private number = 0;
  /** What was on its way when the broker was killed. */
  private unanswered: Published | undefined;

  constructor(
    private readonly name: string,
    private readonly acknowledged: Acknowledged,
  ) {}

  /** Publishes until the broker is gone. @throws {Error} when an answer is not what a broker may say */
  async publishTo(broker: BrokerProcess): Promise<void> {
    if (!(await this.resendTo(broker))) return;
    while (await this.publish(broker, this.next()));
  }

  /** @returns whether the broker is still there */
  async resendTo(broker: BrokerProcess): Promise<boolean> {
    const { unanswered } = this;
    if (unanswered === undefined) return true;
    this.resends += 1;
    return this.publish(broker, unanswered);
  }

  private next(): Published {
    this.number += 1;
    const topic = TOPICS[this.number % TOPICS.length] ?? '';
    const id = this.number % 2 === 0 ? `${this.name}.${this.number}` : undefined;
    const content = JSON.stringify({ producer: this.name, number: this.number, filler: 'x'.repeat((this.number * 37) % 700) });
    return { topic, id, body: `{"topic":"${topic}","content":${content}${id === undefined ? '' : `,"id":"${id}"`}}` };
  }

  private async publish(broker: BrokerProcess, message: Published): Promise<boolean> {
    const received = await broker
      .publish(message.body)
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(() => undefined);
    this.unanswered = received === undefined && message.id !== undefined ? message : undefined;
    if (received === undefined) return false;
    const receipt = JSON.parse(received.text) as { acknowledgement: string; topic: string; offset: number };
    if (received.status !== 200 || receipt.acknowledgement !== 'ACK') {
      throw new Error(`${message.body} was answered with ${received.status} ${received.text}`);
    }
    this.acknowledged.add(message, receipt);
    return true;
  }
}

/** What the consumer was shown at each offset when it was shown it first, and everything that must not have happened. */
class Shown {
  readonly faults: string[] = [];
  private readonly byTopic = new Map<string, string[]>(TOPICS.map((topic) => [topic, []]));

  add(topic: string, offset: number, body: string): void {
    const bodies = this.of(topic);
    const first = bodies[offset];
    if (first === undefined && offset === bodies.length) bodies.push(body);
    else if (first === undefined) this.faults.push(`${topic}: offset ${offset} came first where ${bodies.length} was to come`);
    else if (first !== body) this.faults.push(`${topic}: offset ${offset} was first ${first} and then ${body}`);
  }

  of(topic: string): string[] {
    return this.byTopic.get(topic) ?? [];
  }
}

/** Every message of a data directory that a broker has recovered already. */
async function logOf(dataDir: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const { engine, log: said } = fileEngine(dataDir, { segmentMaxBytes: SEGMENT_MAX_BYTES });
  const topics = new Map<string, string[]>();
  for (const log of await engine.open()) {
    const entries = await readAll(log, 0, { maxCount: 500, maxBytes: 1_000_000 });
    const payloads = entries.map(({ payload, corruption }) => payload?.toString() ?? `${corruption}`);
    topics.set(log.topic, payloads);
  }
  await engine.close();
  // The checkpoints are written while they are copied; nothing else is, so the broker itself must have left nothing to repair.
  expect(said.filter((line) => /recovery of .*\.(mmm|idx)/.test(line))).toEqual([]);
  return topics;
}

const publishedOf = (stored: string | undefined): string | undefined => stored?.replace(/,"timestamp":\d+\}$/, '}');

describe('a broker that is killed', () => {
  it.each(SERIES)(
    'has every acknowledged message in its place after each of $rounds kills under load, each id once, and delivers all of it in order ($series)',
    async ({ rounds }) => {
      const cwd = await newDirectory();
      const shown = new Shown();
      const consumer = await TestConsumer.start(({ topic, offset, body }, response) => {
        shown.add(topic, offset, body);
        answer(response, 200, '{"acknowledgement":"ACK"}');
      });
      stops.push(() => consumer.stop());
      const config = [
        'mmmq:',
        `  broker: { segment: { max-bytes: ${SEGMENT_MAX_BYTES} } }`,
        '  dispatchers:',
        `    - { name: all, host: '${consumer.url}', patterns: ['**'], backoff: { initial-ms: 10, max-ms: 50 } }`,
      ].join('\n');
      const acknowledged = new Acknowledged();
      const producers = Array.from({ length: PRODUCERS }, (_, index) => new Producer(`producer-${index}`, acknowledged));
      let log: ReadonlyMap<string, readonly string[]> = new Map();
      let torn = 0;

      /** Holds what the log is now against all that is known of it. */
      const check = (now: ReadonlyMap<string, readonly string[]>): void => {
        for (const topic of TOPICS) {
          const stored = now.get(topic) ?? [];
          for (const [offset, { body }] of acknowledged.of(topic)) {
            if (publishedOf(stored[offset]) !== body) expect([topic, offset, stored[offset]]).toEqual([topic, offset, body]);
          }
          // What was read once at an offset stays there: read from the disk after an earlier kill, or sent to the consumer.
          for (const before of [log.get(topic) ?? [], shown.of(topic)]) {
            const changed = before.findIndex((payload, offset) => payload !== stored[offset]);
            if (changed !== -1) expect([topic, changed, stored[changed]]).toEqual([topic, changed, before[changed]]);
          }
          const ids = new Set<string>();
          for (const [offset, payload] of stored.entries()) {
            const { id } = JSON.parse(payload) as { id?: string };
            if (id === undefined) continue;
            if (ids.has(id)) expect([topic, offset, id]).toEqual('an id that is nowhere before');
            ids.add(id);
          }
        }
        expect(shown.faults).toEqual([]);
        log = now;
      };

      /** A broker that has recovered what the one before it left, and a look at a copy of that. */
      const startAndCheck = async (): Promise<BrokerProcess> => {
        const broker = await brokers.start({ cwd, config });
        if (/recovery of /.test(broker.output + broker.errors)) torn += 1;
        const copy = join(cwd, 'copy');
        await cp(join(cwd, 'data'), copy, { recursive: true });
        check(await logOf(copy));
        await rm(copy, { recursive: true });
        return broker;
      };

      for (let round = 0; round < rounds; round += 1) {
        const broker = await startAndCheck();
        const enough = acknowledged.reaches(acknowledged.count + Math.ceil(Math.random() * MAX_ACKS));
        const load = Promise.all(producers.map((producer) => producer.publishTo(broker)));
        await Promise.race([enough, load]);
        // Not a wait for a condition: the moment of the kill is what is drawn at random. Half of the kills come at once.
        if (Math.random() < 0.5) await sleep(Math.random() * MAX_DELAY_MS);
        expect(await broker.end('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
        await load;
      }

      const broker = await startAndCheck();
      await Promise.all(producers.map((producer) => producer.resendTo(broker)));
      const isDrained = (topic: string): boolean =>
        shown.of(topic).length >= Math.max(log.get(topic)?.length ?? 0, acknowledged.nextOffset(topic));
      await consumer.until(() => shown.faults.length > 0 || TOPICS.every(isDrained));
      expect(await broker.end('SIGTERM')).toEqual({ code: 0, signal: null });
      check(await logOf(join(cwd, 'data')));
      for (const topic of TOPICS) expect(shown.of(topic)).toEqual(log.get(topic));

      const resends = producers.reduce((sum, producer) => sum + producer.resends, 0);
      console.log(
        `kill test: ${rounds} rounds, ${torn} of them left something to recover, ${acknowledged.count} acknowledged, ` +
          `${resends} resends under an id, ${consumer.received.length} deliveries`,
      );
    },
    60_000 + ROUNDS_PER_LOG * 10_000,
  );
});
