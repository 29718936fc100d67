import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger, type LoggerService } from '@nestjs/common';
import { ManualClock } from '../../test/support/manual-clock.js';
import { MemoryEngine, type MemoryTopicLog } from '../../test/support/memory-engine.js';
import { ack, answer, nack, silence, status, TestConsumer, type TestAnswer } from '../../test/support/test-consumer.js';
import { until } from '../../test/support/until.js';
import { Turns } from '../core/index.js';
import type { Message } from '../message/index.js';
import { BATCH_BYTES_AT_ONCE, BatchRoom } from './batch-room.js';
import { UndiciConsumerClient, type ConsumerClient, type ConsumerReply } from './consumer-client/index.js';
import { DispatcherWorker, type WorkerOptions } from './dispatcher-worker.js';
import { WorkerState } from './dispatcher-worker.state.js';

const NAME = 'order-dispatcher';
const KiB = 1024;
const MiB = 1024 * KiB;

const ACK = { acknowledgement: 'ACK' };
const NACK = { acknowledgement: 'NACK' };
const REJECT = { acknowledgement: 'NACK', retry: false, reason: 'unknown customer' };

/** The verdicts of a consumer, in order. */
const verdicts =
  (...elements: unknown[]): TestAnswer =>
  (_message, response) =>
    answer(response, 200, JSON.stringify(elements));
const acks = (count: number): unknown[] => Array.from({ length: count }, () => ACK);
const countOf = ({ headers }: Parameters<TestAnswer>[0]): number => Number(headers['mmmq-count']);
const ackAll: TestAnswer = (message, response) => answer(response, 200, JSON.stringify(acks(countOf(message))));

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const state = (worker: DispatcherWorker): string => worker.subscription.state;
const idle = (worker: DispatcherWorker): Promise<void> => until(() => state(worker) === WorkerState.IDLE);

describe('DispatcherWorker, in batches', () => {
  let engine: MemoryEngine;
  let log: MemoryTopicLog;
  let clock: ManualClock;
  let logged: string[];
  let commits: number[];
  let deadLetters: Message[];
  let deadLetterFailures: number;
  let consumers: TestConsumer[];
  let workers: DispatcherWorker[];
  let client: ConsumerClient;
  let batchRoom: BatchRoom;

  beforeEach(() => {
    engine = new MemoryEngine();
    log = engine.withTopic('order.created');
    clock = new ManualClock();
    logged = [];
    commits = [];
    deadLetters = [];
    deadLetterFailures = 0;
    consumers = [];
    workers = [];
    client = new UndiciConsumerClient();
    batchRoom = new BatchRoom();
    engine.faults.commit = (_topic, _dispatcher, nextOffset) => void commits.push(nextOffset);
    const keep = (line: unknown): void => void logged.push(String(line));
    const logger: LoggerService = { log: keep, warn: keep, error: keep, debug: keep };
    Logger.overrideLogger(logger);
  });

  afterEach(async () => {
    await Promise.all(consumers.map((consumer) => consumer.stop()));
    await Promise.all(workers.map((worker) => worker.stop()));
    await client.close();
    jest.restoreAllMocks();
    Logger.overrideLogger(false);
  });

  async function startConsumer(...answers: TestAnswer[]): Promise<TestConsumer> {
    const started = await TestConsumer.start(...answers);
    consumers.push(started);
    return started;
  }

  async function appendDeadLetter(message: Message): Promise<{ topic: string; offset: number }> {
    if (deadLetterFailures > 0) {
      deadLetterFailures -= 1;
      throw new Error('ENOSPC');
    }
    return { topic: message.topic, offset: deadLetters.push(message) - 1 };
  }

  function subscribe(
    target: TestConsumer,
    batch: NonNullable<WorkerOptions['batch']> = { maxMessages: 5, maxBytes: MiB },
    topicLog = log,
  ): DispatcherWorker {
    const backoff = { initialMs: 1_000, maxMs: 60_000 };
    const worker = new DispatcherWorker(
      { name: NAME, host: target.host, timeoutMs: 10_000, maxResends: 2, backoff, batch },
      topicLog,
      client,
      { clock, random: () => 0, topicQueues: { append: appendDeadLetter } },
      { turns: new Turns(4), batchRoom },
    );
    workers.push(worker);
    worker.start();
    return worker;
  }

  const stored = (content: unknown): string => JSON.stringify({ topic: log.topic, content });

  async function publish(...contents: unknown[]): Promise<void> {
    await log.append(contents.map((content) => Buffer.from(stored(content))));
  }

  /** Lets one wait after the other pass, until the worker has nothing left to do. @returns the waits, in milliseconds */
  async function passWaitsOf(worker: DispatcherWorker): Promise<number[]> {
    for (;;) {
      await until(() => clock.waiting > 0 || state(worker) === WorkerState.IDLE);
      if (clock.waiting === 0) return clock.asked;
      clock.advance(clock.asked.at(-1) ?? 0);
    }
  }

  /** What came, as `first offset + count / attempt`. */
  const sent = (target: TestConsumer): string[] =>
    target.received.map((message) => `${message.offset}+${countOf(message)}/${message.attempt}`);

  describe('delivers', () => {
    it('what is there in order, so many messages at a time, and commits each batch once before it sends the next', async () => {
      const committedAtReceipt: (number | undefined)[] = [];
      const target = await startConsumer((message, response) => {
        committedAtReceipt.push(log.positions.get(NAME));
        ackAll(message, response);
      });
      await publish(...range(12));
      const worker = subscribe(target);
      await idle(worker);
      expect(sent(target)).toEqual(['0+5/1', '5+5/1', '10+2/1']);
      expect(target.received.flatMap(({ body }) => (JSON.parse(body) as { content: number }[]).map(({ content }) => content))).toEqual(
        range(12),
      );
      expect(committedAtReceipt).toEqual([0, 5, 10]);
      expect(commits).toEqual([5, 10, 12]);
      expect(worker.subscription).toMatchObject({ nextOffset: 12, counters: { delivered: 12 } });
    });

    it('the stored bytes as an array to /messages/batch of the host, with headers that say which messages these are', async () => {
      const target = await startConsumer(ackAll);
      const messages = [
        '{"topic":"order.created", "content":{"amount":1.0,"big":9007199254740993,"a":1,"a":2},"id":"i","key":"k","headers":{"tenant":"t"}}',
        '{"topic":"order.created","content":"\\ud800 주문","timestamp":1}',
      ];
      await log.append(messages.map((message) => Buffer.from(message)));
      await idle(subscribe(target));
      const [received] = target.received;
      expect(received).toMatchObject({ url: '/messages/batch', body: `[${messages.join(',')}]` });
      const own = Object.entries(received?.headers ?? {}).filter(([name]) => name.startsWith('mmmq-') || name === 'content-type');
      expect(Object.fromEntries(own)).toEqual({
        'content-type': 'application/json',
        'mmmq-dispatcher': NAME,
        'mmmq-topic': 'order.created',
        'mmmq-offset': '0',
        'mmmq-count': '2',
        'mmmq-attempt': '1',
      });
    });

    it('a message alone, without a wait for more', async () => {
      const target = await startConsumer(ackAll);
      const worker = subscribe(target);
      await idle(worker);
      await publish('a');
      await until(() => worker.subscription.nextOffset === 1);
      await idle(worker);
      await publish('b', 'c');
      await until(() => worker.subscription.nextOffset === 3);
      expect(sent(target)).toEqual(['0+1/1', '1+2/1']);
      expect(clock.asked).toEqual([]);
    });

    it('what arrives in the middle of a commit, in a batch of its own', async () => {
      const target = await startConsumer(ackAll);
      engine.faults.commit = async () => {
        if (log.count < 6) await publish('a', 'b');
      };
      await publish('first');
      const worker = subscribe(target);
      await until(() => worker.subscription.nextOffset === 7);
      expect(sent(target)).toEqual(['0+1/1', '1+2/1', '3+2/1', '5+2/1']);
    });

    it('in bodies of the largest size at most, to the byte; what is larger alone comes alone', async () => {
      const two = `[${stored('a')},${stored('b')}]`.length;
      const target = await startConsumer(ackAll);
      await publish('a', 'b', 'c', 'd'.repeat(two), 'e', 'f');
      await idle(subscribe(target, { maxMessages: 5, maxBytes: two }));
      expect(sent(target)).toEqual(['0+2/1', '2+1/1', '3+1/1', '4+2/1']);
      expect(target.received[0]?.body).toHaveLength(two);
      expect(target.received[2]?.body).toBe(`[${stored('d'.repeat(two))}]`);

      const other = engine.withTopic('order.other', log.payloads.slice(0, 2));
      await idle(subscribe(target, { maxMessages: 5, maxBytes: two - 1 }, other));
      expect(sent(target).slice(4)).toEqual(['0+1/1', '1+1/1']);
    });

    it('up to a corrupt entry, which is skipped alone with a commit, and what is behind it', async () => {
      await publish(...range(7));
      log.corrupt.add(2).add(6);
      const target = await startConsumer(ackAll);
      const worker = subscribe(target);
      await idle(worker);
      expect(sent(target)).toEqual(['0+2/1', '3+3/1']);
      expect(commits).toEqual([2, 3, 6, 7]);
      expect(worker.subscription.counters).toMatchObject({ delivered: 5, skippedCorrupt: 2 });
      expect(logged.filter((line) => line.includes('corrupt entry skipped'))).toHaveLength(2);
    });

    it('a message that another program wrote as a string, where it is no JSON that could stand in an array', async () => {
      const target = await startConsumer(ackAll);
      const foreign = ['not json', '1,2', '[1', '', '{"a":1} {"b":2}'];
      await log.append([...foreign.map((text) => Buffer.from(text)), Buffer.from([0xff, 0x22]), Buffer.from('[1,2]')]);
      await idle(subscribe(target, { maxMessages: 10, maxBytes: MiB }));
      expect(sent(target)).toEqual(['0+7/1']);
      expect(JSON.parse(target.received[0]?.body ?? '')).toEqual([...foreign, '\ufffd"', [1, 2]]);
    });

    it('through a client that throws, as to a consumer that did not answer', async () => {
      const target = await startConsumer(ackAll);
      await publish('a', 'b');
      jest.spyOn(client, 'post').mockRejectedValueOnce(new Error('broken interceptor'));
      const worker = subscribe(target);
      expect(await passWaitsOf(worker)).toEqual([1_000]);
      expect(sent(target)).toEqual(['0+2/2']);
      expect(worker.subscription.counters).toMatchObject({ improper: 1, delivered: 2 });
    });
  });

  describe('after NACK', () => {
    it('commits the ACKs in front of it at once, waits, and sends again from that message on', async () => {
      const target = await startConsumer(verdicts(ACK, ACK, NACK, ACK, ACK), verdicts(NACK), ackAll);
      await publish(...range(9));
      const worker = subscribe(target);
      await until(() => clock.waiting === 1);
      expect(commits).toEqual([2]);
      expect(worker.subscription).toMatchObject({ state: WorkerState.BACKING_OFF, nextOffset: 2, counters: { delivered: 2, nacked: 1 } });
      expect(await passWaitsOf(worker)).toEqual([1_000, 2_000]);
      expect(sent(target)).toEqual(['0+5/1', '2+5/2', '2+5/3', '7+2/1']);
      expect(commits).toEqual([2, 7, 9]);
      expect(deadLetters).toEqual([]);
      expect(worker.subscription.counters).toMatchObject({ delivered: 9, nacked: 2, improper: 0 });
    });

    it('keeps a dead letter after the last resend, which has counted every send of the message and has its own verdict', async () => {
      const poison = { ...NACK, note: 'no stock' };
      const target = await startConsumer(verdicts(ACK, ACK, poison), verdicts(NACK, ACK), verdicts(poison, 'not looked at'), ackAll);
      await publish(...range(6));
      const worker = subscribe(target);
      expect(await passWaitsOf(worker)).toEqual([1_000, 2_000]);
      expect(sent(target)).toEqual(['0+5/1', '2+4/2', '2+4/3', '3+3/4']);
      expect(commits).toEqual([2, 3, 6]);
      expect(deadLetters.map(({ content }) => JSON.parse(String(content)))).toEqual([
        {
          topic: 'order.created',
          offset: 2,
          attempts: 3,
          reason: 'NACK also after 2 resends',
          answer: { status: 200, body: '{"acknowledgement":"NACK","note":"no stock"}' },
          message: { topic: 'order.created', content: 2 },
        },
      ]);
      expect(worker.subscription.counters).toMatchObject({ delivered: 5, deadLettered: 1, nacked: 3 });
    });

    it('that asks for no resend keeps a dead letter at once, and goes on without a wait', async () => {
      const target = await startConsumer(verdicts(ACK, REJECT, ACK), verdicts(REJECT), ackAll);
      await publish(...range(4));
      expect(await passWaitsOf(subscribe(target))).toEqual([]);
      expect(sent(target)).toEqual(['0+4/1', '2+2/2', '3+1/3']);
      expect(commits).toEqual([1, 2, 3, 4]);
      expect(deadLetters.map(({ content }) => JSON.parse(String(content)))).toMatchObject([
        { offset: 1, attempts: 1, reason: 'unknown customer' },
        { offset: 2, attempts: 2, reason: 'unknown customer' },
      ]);
    });

    it('counts the NACKs of each message on its own', async () => {
      const target = await startConsumer(verdicts(NACK), verdicts(ACK, NACK), verdicts(NACK), ackAll);
      await publish('a', 'b');
      const worker = subscribe(target);
      expect(await passWaitsOf(worker)).toEqual([1_000, 1_000, 2_000]);
      expect(deadLetters).toEqual([]);
      expect(sent(target)).toEqual(['0+2/1', '0+2/2', '1+1/3', '1+1/4']);
    });

    it('has the ACKs in front committed while the dead letter cannot be written, and sends nothing meanwhile', async () => {
      deadLetterFailures = 2;
      const target = await startConsumer(verdicts(ACK, ACK, REJECT), ackAll);
      await publish(...range(5));
      const worker = subscribe(target);
      await until(() => clock.waiting === 1);
      expect(worker.subscription).toMatchObject({
        nextOffset: 2,
        lastProblem: { reason: 'the dead letter cannot be written (ENOSPC)' },
      });
      expect(commits).toEqual([2]);
      expect(await passWaitsOf(worker)).toEqual([1_000, 2_000]);
      expect(sent(target)).toEqual(['0+5/1', '3+2/2']);
      expect(deadLetters).toHaveLength(1);
    });

    it('leaves a dead letter of a dead letter where it is', async () => {
      const letters = engine.withTopic('dlq.billing', [Buffer.from('{"a":1}'), Buffer.from('{"b":1}'), Buffer.from('{"c":1}')]);
      const target = await startConsumer(verdicts(ACK, REJECT), ackAll);
      const worker = subscribe(target, undefined, letters);
      await idle(worker);
      expect(deadLetters).toEqual([]);
      expect(letters.positions.get(NAME)).toBe(3);
      expect(worker.subscription.counters).toMatchObject({ delivered: 2, passed: 1 });
    });
  });

  describe('after an answer that ends early', () => {
    it('commits what is acknowledged and sends the rest again, at once', async () => {
      const target = await startConsumer(verdicts(ACK), verdicts(ACK, ACK), ackAll);
      await publish(...range(7));
      const worker = subscribe(target);
      expect(await passWaitsOf(worker)).toEqual([]);
      expect(sent(target)).toEqual(['0+5/1', '1+5/2', '3+4/3']);
      expect(commits).toEqual([1, 3, 7]);
      expect(worker.subscription.counters).toMatchObject({ delivered: 7, nacked: 0, improper: 0 });
    });
  });

  describe('without a proper answer', () => {
    it.each<[string, TestAnswer]>([
      ['no verdict', verdicts()],
      ['more verdicts than messages', verdicts(...acks(4))],
      ['one verdict that is in no array', ack],
      ['one NACK that is in no array', nack],
      ['an array that does not end', (_message, response) => answer(response, 200, '[{"acknowledgement":"ACK"}')],
      ['an array of something else', verdicts('ACK', 'ACK', 'ACK')],
      ['an empty body', (_message, response) => answer(response, 204, '')],
      ['ACKs with another status', (_message, response) => answer(response, 500, JSON.stringify(acks(3)))],
      ['an array that is too long for so many', verdicts({ ...ACK, note: 'x'.repeat(65 * KiB) })],
      ['a connection that breaks', (_message, response) => response.destroy()],
    ])('commits nothing and sends the batch again: %s', async (_what, improper) => {
      const target = await startConsumer(improper, improper, ackAll);
      await publish('a', 'b', 'c');
      const worker = subscribe(target);
      expect(await passWaitsOf(worker)).toEqual([1_000, 2_000]);
      expect(sent(target)).toEqual(['0+3/1', '0+3/2', '0+3/3']);
      expect(new Set(target.received.map(({ body }) => body)).size).toBe(1);
      expect(commits).toEqual([3]);
      expect(worker.subscription.counters).toMatchObject({ delivered: 3, improper: 2, nacked: 0 });
      expect(logged.at(-1)).toContain('offset 0, attempt 3: the consumer answers properly again');
    });

    it('waits as long as Retry-After asks, and names the consumer', async () => {
      const target = await startConsumer(status(503, { 'retry-after': '30' }), ackAll);
      await publish('a', 'b');
      expect(await passWaitsOf(subscribe(target))).toEqual([30_000]);
      expect(logged[0]).toContain(`offset 0: attempt 1 with 2 messages: no proper answer from ${target.url}/messages/batch (status 503)`);
    });

    it('from some message on, commits the ACKs in front of it, and backs off before it sends the rest again', async () => {
      const target = await startConsumer(status(503), verdicts(ACK, ACK, 'what?', ACK), verdicts({ acknowledgement: 'yes' }), ackAll);
      await publish(...range(4));
      const worker = subscribe(target);
      expect(await passWaitsOf(worker)).toEqual([1_000, 1_000, 2_000]);
      expect(sent(target)).toEqual(['0+4/1', '0+4/2', '2+2/3', '2+2/4']);
      expect(commits).toEqual([2, 4]);
      expect(worker.subscription.counters).toMatchObject({ delivered: 4, improper: 3 });
    });

    it('sends smaller batches from the third time on, and larger ones again after proper answers', async () => {
      const tooMany: TestAnswer = (message, response) =>
        countOf(message) > 2 ? status(413)(message, response) : ackAll(message, response);
      const target = await startConsumer(tooMany);
      await publish(...range(20));
      const worker = subscribe(target, { maxMessages: 16, maxBytes: MiB });
      await passWaitsOf(worker);
      const sizes = target.received.map((message) => `${message.offset}+${countOf(message)}`).join(' ');
      expect(sizes).toMatch(/^0\+16 0\+16 0\+16 0\+8 0\+4 0\+2 2\+4 2\+4 2\+4 2\+2 4\+4 4\+4 4\+4 4\+2 6\+4 .* 16\+2 18\+2$/);
      expect(worker.subscription.counters).toMatchObject({ delivered: 20, deadLettered: 0 });
    });

    it('sends one message alone in the end, and for ever', async () => {
      const target = await startConsumer(...Array.from({ length: 12 }, () => status(500)), ackAll);
      await publish(...range(5));
      await passWaitsOf(subscribe(target));
      expect(target.received.map(countOf)).toEqual([5, 5, 5, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
    });
  });

  it('takes an answer that is longer the more messages it is for', async () => {
    const note = 'x'.repeat(500);
    const long: TestAnswer = (message, response) =>
      answer(response, 200, JSON.stringify(Array.from({ length: countOf(message) }, () => ({ ...ACK, note }))));
    const target = await startConsumer(long);
    await publish(...range(300));
    const worker = subscribe(target, { maxMessages: 300, maxBytes: MiB });
    expect(await passWaitsOf(worker)).toEqual([]);
    expect(sent(target)).toEqual(['0+300/1']);
  });

  it('waits with the next batch until the commit succeeds, and sends nothing again', async () => {
    let failures = 2;
    engine.faults.commit = () => {
      if (failures-- > 0) throw new Error('EIO');
    };
    const target = await startConsumer(ackAll);
    await publish(...range(7));
    const worker = subscribe(target);
    await until(() => clock.waiting === 1);
    expect(worker.subscription).toMatchObject({ nextOffset: 0, counters: { delivered: 0 } });
    expect(await passWaitsOf(worker)).toEqual([1_000, 2_000]);
    expect(sent(target)).toEqual(['0+5/1', '5+2/1']);
  });

  describe('when stopped', () => {
    it('commits what the attempt under way is answered with, keeps its dead letter, and sends nothing more', async () => {
      let finish: (() => void) | undefined;
      const target = await startConsumer((message, response) => {
        finish = () => verdicts(ACK, ACK, REJECT)(message, response);
      });
      await publish(...range(8));
      const worker = subscribe(target);
      await until(() => finish !== undefined);
      const stopped = worker.stop();
      finish?.();
      await stopped;
      expect(worker.subscription).toMatchObject({ state: WorkerState.STOPPED, nextOffset: 3 });
      expect(commits).toEqual([2, 3]);
      expect(deadLetters).toHaveLength(1);
      expect(sent(target)).toEqual(['0+5/1']);
    });

    it('aborts a batch that has no answer after 5 s, and commits nothing of it', async () => {
      const target = await startConsumer(silence);
      await publish(...range(3));
      const worker = subscribe(target);
      await until(() => target.received.length === 1);
      const stopped = worker.stop();
      clock.advance(5_000);
      await stopped;
      expect(worker.subscription).toMatchObject({ state: WorkerState.STOPPED, nextOffset: 0, counters: { improper: 0 } });
      expect(commits).toEqual([]);
    });
  });

  describe('in memory', () => {
    /** A consumer that answers when it is told to. */
    const posts: { readonly bytes: number; readonly answer: (reply: ConsumerReply) => void }[] = [];
    const held: ConsumerClient = {
      post: ({ body }) => new Promise((resolve) => posts.push({ bytes: body.length, answer: resolve })),
      close: () => Promise.resolve(),
    };

    it('has no more of all topics together than the room that they share, and one message each', async () => {
      client = held;
      posts.length = 0;
      const message = Buffer.from(stored('x'.repeat(100 * KiB)));
      const target = await startConsumer();
      for (const number of range(100)) {
        const other = engine.withTopic(
          `order.${number}`,
          Array.from({ length: 20 }, () => message),
        );
        const options = { name: NAME, host: target.host, timeoutMs: 10_000, maxResends: 2, backoff: { initialMs: 1, maxMs: 1 } };
        const runtime = { clock, random: () => 0, topicQueues: { append: appendDeadLetter } };
        const batch = { maxMessages: 20, maxBytes: MiB };
        const worker = new DispatcherWorker({ ...options, batch }, other, client, runtime, { turns: new Turns(128), batchRoom });
        workers.push(worker);
        worker.start();
      }
      await until(() => posts.length === 100);
      expect(posts.slice(0, 20).every(({ bytes }) => bytes > 900 * KiB && bytes <= MiB)).toBe(true);
      expect(posts.at(-1)?.bytes).toBeLessThan(500 * KiB);
      expect(posts.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(BATCH_BYTES_AT_ONCE + 100 * message.length);

      const stopped = Promise.all(workers.map((worker) => worker.stop()));
      for (const { answer: give } of posts) give({ kind: 'failure', reason: 'late' });
      await stopped;
      expect(batchRoom.take(16 * MiB)).toBe(16 * MiB);
    });

    it('has nothing while it waits', async () => {
      setFlagsFromString('--expose-gc');
      const collectGarbage = runInNewContext('gc') as () => void;
      const read = log.read.bind(log);
      const given: WeakRef<Buffer>[] = [];
      log.read = async (offset, limits) =>
        (await read(offset, limits)).map((entry) => {
          const payload = Buffer.from(entry.payload ?? '');
          given.push(new WeakRef(payload));
          return { offset: entry.offset, payload };
        });
      const target = await startConsumer(verdicts(ACK, NACK), ackAll);
      await publish('a', 'b', 'c', 'd');
      const worker = subscribe(target);
      await until(() => state(worker) === WorkerState.BACKING_OFF);
      expect(given).toHaveLength(4);
      await until(() => {
        collectGarbage();
        return given.every((payload) => payload.deref() === undefined);
      });
      await setImmediate();
    });
  });

  it('never logs what a message or an answer says', async () => {
    const secret = 'secret-4711';
    const target = await startConsumer(
      verdicts(secret),
      verdicts(ACK, { acknowledgement: secret }),
      verdicts({ ...NACK, reason: secret }),
      verdicts({ ...REJECT, reason: secret }),
      ackAll,
    );
    await publish(secret, secret, secret);
    await passWaitsOf(subscribe(target));
    expect(deadLetters).toHaveLength(1);
    expect(logged.length).toBeGreaterThan(3);
    expect(logged.filter((line) => line.includes(secret))).toEqual([]);
  });
});
