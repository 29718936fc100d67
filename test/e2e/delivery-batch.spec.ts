import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HttpModule } from '@nestjs/axios';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { ModuleMetadata } from '@nestjs/common';
import { Dispatcher, DispatcherModule, Host, HttpServiceConsumerClient, TopicPattern, type DispatcherDefinition } from '../../src/index.js';
import { brokerApplication } from '../support/broker-application.js';
import { brokerProcesses, type BrokerProcess } from '../support/broker-process.js';
import { FaultyFileSystem } from '../support/faulty-file-system.js';
import { fileEngine, readTexts } from '../support/file-engine.js';
import { answer, silence, status, TestConsumer, type ReceivedMessage, type TestAnswer } from '../support/test-consumer.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

const TOPIC = 'order.created';
const NAME = 'orders';
const CHECKPOINT_SYNC = `sync ${NAME}.checkpoint`;

const { start: startProcess } = brokerProcesses();
const newDirectory = temporaryDirectories();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

interface Verdict {
  readonly acknowledgement: string;
  readonly retry?: boolean;
  readonly reason?: string;
}
const ACK: Verdict = { acknowledgement: 'ACK' };
const NACK: Verdict = { acknowledgement: 'NACK' };

/** A consumer as it should be: it takes the messages of a batch in order, and stops at the first that it does not acknowledge. */
function taking(judge: (content: number) => Verdict): TestAnswer {
  return ({ body }, response) => {
    const verdicts: Verdict[] = [];
    for (const { content } of JSON.parse(body) as { content: number }[]) {
      const verdict = judge(content);
      verdicts.push(verdict);
      if (verdict.acknowledgement !== 'ACK') break;
    }
    answer(response, 200, JSON.stringify(verdicts));
  };
}
const ackAll = taking(() => ACK);

const sizeOf = ({ headers }: ReceivedMessage): number => Number(headers['mmmq-count']);
/** What came, as `first offset + count / attempt`. */
const batchesOf = (consumer: TestConsumer): string[] =>
  consumer.received.map((message) => `${message.offset}+${sizeOf(message)}/${message.attempt}`);
const contentsOf = (consumer: TestConsumer): number[] =>
  consumer.received.flatMap(({ body }) => (JSON.parse(body) as { content: number }[]).map(({ content }) => content));
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index);

async function startConsumer(...answers: TestAnswer[]): Promise<TestConsumer> {
  const consumer = await TestConsumer.start(...answers);
  stops.push(() => consumer.stop());
  return consumer;
}

const optionsOf = { backoff: { initialMs: 5, maxMs: 20 }, batch: { maxMessages: 10 } };

function dispatcherTo(consumer: TestConsumer): ModuleMetadata {
  const dispatcher = new Dispatcher(NAME, Host.of(consumer.url), [TopicPattern.of('order.**')], optionsOf);
  return { providers: [{ provide: NAME, useValue: dispatcher }] };
}

interface Started {
  readonly url: string;
  readonly disk: FaultyFileSystem;
  readonly stop: () => Promise<void>;
}

async function startBroker(rootDir: string, metadata: ModuleMetadata = {}): Promise<Started> {
  const disk = new FaultyFileSystem();
  const { app, url } = await brokerApplication({ broker: { storage: { rootDir } }, fileSystem: disk, metadata });
  let closed: Promise<void> | undefined;
  const stop = (): Promise<void> => (closed ??= app.close());
  stops.push(stop);
  return { url, disk, stop };
}

async function publishTo(url: string, contents: readonly number[]): Promise<void> {
  const body = contents.map((content) => JSON.stringify({ topic: TOPIC, content })).join('\n');
  const response = await fetch(`${url}/messages/batch`, { method: 'POST', headers: { 'content-type': 'application/x-ndjson' }, body });
  expect(response.status).toBe(200);
}

/** A data directory with messages 0 to `count` - 1, before there is a dispatcher. */
async function stored(count: number): Promise<string> {
  const rootDir = await newDirectory();
  const { url, stop } = await startBroker(rootDir);
  await publishTo(url, numbers(0, count));
  await stop();
  return rootDir;
}

/** What the checkpoint says; -1 where there is none. */
function committed(rootDir: string): number {
  try {
    return Number(readFileSync(join(rootDir, TOPIC, 'checkpoints', `${NAME}.checkpoint`)).readBigInt64BE(0));
  } catch {
    return -1;
  }
}

const untilCommitted = (rootDir: string, offset: number): Promise<void> => until(() => committed(rootDir) === offset);

/** How often the checkpoint was synced, without its making, until the broker has stopped. */
async function commitsOf({ disk, stop }: Started): Promise<number> {
  await stop();
  return disk.calls.filter((call) => call === CHECKPOINT_SYNC).length - 1;
}

async function deadLettersIn(rootDir: string): Promise<unknown[]> {
  const { engine } = fileEngine(rootDir);
  const log = (await engine.open()).find(({ topic }) => topic === `dlq.${NAME}`);
  const texts = log === undefined ? [] : await readTexts(log);
  await engine.close();
  return texts.map((text) => (JSON.parse(text ?? '') as { content: unknown }).content);
}

describe('delivery in batches', () => {
  const definition = (consumer: TestConsumer): DispatcherDefinition => ({
    name: NAME,
    host: consumer.url,
    patterns: ['order.**'],
    ...optionsOf,
  });
  it.each<[string, (consumer: TestConsumer) => ModuleMetadata]>([
    ['a Dispatcher of the application', dispatcherTo],
    ['DispatcherModule', (consumer) => ({ imports: [DispatcherModule.forRoot([definition(consumer)])] })],
    [
      'DispatcherModule through the HttpService',
      (consumer) => ({
        imports: [DispatcherModule.forRoot([definition(consumer)], { imports: [HttpModule], consumerClient: HttpServiceConsumerClient })],
      }),
    ],
  ])('takes the stored bytes in order, and commits each batch with one sync before the next: %s', async (_what, metadataOf) => {
    const rootDir = await stored(25);
    const committedAtReceipt: number[] = [];
    const consumer = await startConsumer((message, response) => {
      committedAtReceipt.push(committed(rootDir));
      ackAll(message, response);
    });
    const broker = await startBroker(rootDir, metadataOf(consumer));
    await untilCommitted(rootDir, 25);
    expect(batchesOf(consumer)).toEqual(['0+10/1', '10+10/1', '20+5/1']);
    expect(committedAtReceipt).toEqual([0, 10, 20]);
    expect(await commitsOf(broker)).toBe(3);
    expect(consumer.received.map(({ url }) => url)).toEqual(Array.from({ length: 3 }, () => '/messages/batch'));

    const { engine } = fileEngine(rootDir);
    const [log] = await engine.open();
    const texts = log === undefined ? [] : await readTexts(log);
    await engine.close();
    expect(consumer.received.map(({ body }) => body)).toEqual(
      [texts.slice(0, 10), texts.slice(10, 20), texts.slice(20)].map((batch) => `[${batch.join(',')}]`),
    );
  });

  it('takes what is there while producers publish, and every message once', async () => {
    const rootDir = await newDirectory();
    const consumer = await startConsumer(ackAll);
    const { url } = await startBroker(rootDir, dispatcherTo(consumer));
    for (let from = 0; from < 300; from += 30) await publishTo(url, numbers(from, from + 30));
    await untilCommitted(rootDir, 300);
    expect(contentsOf(consumer)).toEqual(numbers(0, 300));
    expect(consumer.received.every((message) => sizeOf(message) <= 10)).toBe(true);
  });

  it('after a NACK in the middle commits what is in front of it with one sync, and begins the resends with that message', async () => {
    const rootDir = await stored(12);
    let nacks = 0;
    const consumer = await startConsumer(taking((content) => (content === 4 && nacks++ < 2 ? NACK : ACK)));
    const broker = await startBroker(rootDir, dispatcherTo(consumer));
    await untilCommitted(rootDir, 12);
    expect(batchesOf(consumer)).toEqual(['0+10/1', '4+8/2', '4+8/3']);
    expect(await commitsOf(broker)).toBe(2);
    expect(await deadLettersIn(rootDir)).toEqual([]);
  });

  it('keeps a dead letter of what gets NACK again and again, and goes on behind it', async () => {
    const rootDir = await stored(8);
    const consumer = await startConsumer(taking((content) => (content === 3 ? NACK : ACK)));
    const broker = await startBroker(rootDir, dispatcherTo(consumer));
    await untilCommitted(rootDir, 8);
    expect(batchesOf(consumer)).toEqual(['0+8/1', '3+5/2', '3+5/3', '3+5/4', '4+4/5']);
    expect(await commitsOf(broker)).toBe(3);
    expect(await deadLettersIn(rootDir)).toMatchObject([
      { topic: TOPIC, offset: 3, attempts: 4, answer: { status: 200, body: '{"acknowledgement":"NACK"}' }, message: { content: 3 } },
    ]);
  });

  it('keeps a dead letter at once of what is not to be retried, durable before the checkpoint passes it', async () => {
    const rootDir = await stored(8);
    const refusal = { ...NACK, retry: false, reason: 'no such customer' };
    const consumer = await startConsumer(taking((content) => (content % 3 === 2 ? refusal : ACK)));
    const broker = await startBroker(rootDir, dispatcherTo(consumer));
    await untilCommitted(rootDir, 8);
    expect(batchesOf(consumer)).toEqual(['0+8/1', '3+5/2', '6+2/3']);
    await broker.stop();
    const syncs = broker.disk.calls.filter((call) => /^sync .*\.(idx|checkpoint)$/.test(call)).slice(-5);
    expect(syncs.map((call) => (call === CHECKPOINT_SYNC ? 'commit' : 'dead letter'))).toEqual([
      'commit',
      'commit',
      'dead letter',
      'commit',
      'commit',
    ]);
    expect(await deadLettersIn(rootDir)).toMatchObject([
      { offset: 2, attempts: 1, reason: 'no such customer' },
      { offset: 5, attempts: 2, reason: 'no such customer' },
    ]);
  });

  it('sends again what an answer that ends early does not come to', async () => {
    const rootDir = await stored(10);
    const three: TestAnswer = (message, response) =>
      answer(response, 200, JSON.stringify(Array.from({ length: Math.min(3, sizeOf(message)) }, () => ACK)));
    const consumer = await startConsumer(three);
    const broker = await startBroker(rootDir, dispatcherTo(consumer));
    await untilCommitted(rootDir, 10);
    expect(batchesOf(consumer)).toEqual(['0+10/1', '3+7/2', '6+4/3', '9+1/4']);
    expect(await commitsOf(broker)).toBe(4);
  });

  it('commits nothing of a batch without a proper answer, however long that takes, and then all of it', async () => {
    const rootDir = await stored(4);
    const body =
      (text: string): TestAnswer =>
      (_message, response) =>
        answer(response, 200, text);
    const ack = JSON.stringify(ACK);
    const improper = [status(503, { 'retry-after': '0' }), body('[]'), body(ack), body(`[${ack},${ack},${ack},${ack},${ack}]`), body('OK')];
    const consumer = await startConsumer(...improper, silence, ackAll);
    const metadata = { ...definition(consumer), timeoutMs: 300 };
    const broker = await startBroker(rootDir, { imports: [DispatcherModule.forRoot([metadata])] });
    await untilCommitted(rootDir, 4);
    // From the third on they have half as many messages each.
    expect(batchesOf(consumer)).toEqual(['0+4/1', '0+4/2', '0+4/3', '0+2/4', '0+1/5', '0+1/6', '0+1/7', '1+2/5', '3+1/4']);
    expect(await commitsOf(broker)).toBe(3);
  });

  it('waits for a consumer that vanishes in the middle of a batch', async () => {
    const rootDir = await stored(6);
    const vanishing = await TestConsumer.start((_message, response) => response.write('[{"acknowledgement":"ACK"},'));
    const { port } = vanishing;
    await startBroker(rootDir, dispatcherTo(vanishing));
    await vanishing.until((all) => all.length === 1);
    await vanishing.stop();
    const back = await TestConsumer.startOn(port, ackAll);
    stops.push(() => back.stop());
    await untilCommitted(rootDir, 6);
    expect(contentsOf(back)).toEqual(numbers(0, 6));
  });

  it('goes on behind the last commit after a kill in the middle of a batch: what was not committed comes again, in order', async () => {
    const rootDir = await stored(27);
    let answers = 0;
    // The first batch is acknowledged; the second one is in the consumer's hands when the broker dies.
    const first = await startConsumer((message, response) => (answers++ === 0 ? ackAll : silence)(message, response));
    const processOf = async (consumer: TestConsumer): Promise<BrokerProcess> => {
      const dispatcher = `{ name: ${NAME}, host: '${consumer.url}', patterns: [order.**], batch: { max-messages: 10 } }`;
      const config = `mmmq:\n  dispatchers:\n    - ${dispatcher}\n`;
      return await startProcess({ cwd: await newDirectory(), config, env: { MMMQ_BROKER_STORAGE_ROOT_DIR: rootDir } });
    };

    const killed = await processOf(first);
    await first.until((all) => all.length === 2);
    await killed.end('SIGKILL');
    expect(batchesOf(first)).toEqual(['0+10/1', '10+10/1']);
    expect(committed(rootDir)).toBe(10);

    const second = await startConsumer(ackAll);
    const restarted = await processOf(second);
    await untilCommitted(rootDir, 27);
    expect(batchesOf(second)).toEqual(['10+10/1', '20+7/1']);
    expect(contentsOf(second)).toEqual(numbers(10, 27));
    expect(await restarted.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  it('stops while a batch is under way: its answer is waited for and committed, and no other batch is begun', async () => {
    const rootDir = await stored(15);
    let finish: (() => void) | undefined;
    const consumer = await startConsumer((message, response) => {
      finish = () => taking((content) => (content < 7 ? ACK : NACK))(message, response);
    });
    const broker = await startBroker(rootDir, dispatcherTo(consumer));
    await until(() => finish !== undefined);
    const stopped = broker.stop();
    finish?.();
    await stopped;
    expect(batchesOf(consumer)).toEqual(['0+10/1']);
    expect(committed(rootDir)).toBe(7);
  });
});
