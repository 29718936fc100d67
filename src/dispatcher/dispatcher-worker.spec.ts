import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger, type LoggerService } from '@nestjs/common';
import { ManualClock } from '../../test/support/manual-clock.js';
import { fileEngine } from '../../test/support/file-engine.js';
import { MemoryEngine, type MemoryTopicLog } from '../../test/support/memory-engine.js';
import { temporaryDirectories } from '../../test/support/temporary-directory.js';
import { ack, answer, nack, silence, status, TestConsumer, type TestAnswer } from '../../test/support/test-consumer.js';
import { until } from '../../test/support/until.js';
import { ErrorCode, MmmqError, Turns, type TopicLog } from '../core/index.js';
import type { Message } from '../message/index.js';
import { BatchRoom } from './batch-room.js';
import { UndiciConsumerClient, type ConsumerClient, type ConsumerReply } from './consumer-client/index.js';
import { DispatcherWorker, type WorkerOptions } from './dispatcher-worker.js';
import { WorkerState } from './dispatcher-worker.state.js';

const NAME = 'order-dispatcher';

const state = (worker: DispatcherWorker): string => worker.subscription.state;
const idle = (worker: DispatcherWorker): Promise<void> => until(() => state(worker) === WorkerState.IDLE);
const unavailable = (retryAfter: string): TestAnswer => status(503, { 'retry-after': retryAfter });

const newDirectory = temporaryDirectories();

/** Node's own collector, which it gives out only when told so. */
function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

describe('DispatcherWorker', () => {
  let engine: MemoryEngine;
  let log: MemoryTopicLog;
  let clock: ManualClock;
  let logged: string[];
  let deadLetters: Message[];
  let deadLetterFailures: number;
  let appendDeadLetter: (message: Message) => { topic: string; offset: number };
  let random: number;
  let consumers: TestConsumer[];
  let workers: DispatcherWorker[];
  let client: ConsumerClient;
  let turns: Turns;

  beforeEach(() => {
    engine = new MemoryEngine();
    log = engine.withTopic('order.created');
    clock = new ManualClock();
    logged = [];
    deadLetters = [];
    deadLetterFailures = 0;
    appendDeadLetter = (message) => {
      if (deadLetterFailures > 0) {
        deadLetterFailures -= 1;
        throw new Error('ENOSPC');
      }
      return { topic: message.topic, offset: deadLetters.push(message) - 1 };
    };
    random = 0;
    consumers = [];
    workers = [];
    client = new UndiciConsumerClient();
    turns = new Turns(4);
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

  function subscribe(target: TestConsumer, options: Partial<WorkerOptions> = {}, topicLog: TopicLog = log): DispatcherWorker {
    const backoff = { initialMs: 1_000, maxMs: 60_000 };
    const worker = new DispatcherWorker(
      { name: NAME, host: target.host, timeoutMs: 10_000, maxResends: 3, backoff, ...options },
      topicLog,
      client,
      {
        clock,
        random: () => random,
        topicQueues: {
          append: async (message) => appendDeadLetter(message),
        },
      },
      { turns, batchRoom: new BatchRoom() },
    );
    workers.push(worker);
    worker.start();
    return worker;
  }

  async function publish(...contents: unknown[]): Promise<void> {
    await log.append(contents.map((content) => Buffer.from(JSON.stringify({ topic: log.topic, content }))));
  }

  /** Notes what is read, as `offset+maxCount`. */
  function noteReads(): string[] {
    const reads: string[] = [];
    const read = log.read.bind(log);
    log.read = (offset, limits) => {
      reads.push(`${offset}+${limits.maxCount}`);
      return read(offset, limits);
    };
    return reads;
  }

  const committed = (): number | undefined => log.positions.get(NAME);

  /** Lets one wait after the other pass, until the worker has nothing left to do. @returns the waits, in milliseconds */
  async function passWaitsOf(worker: DispatcherWorker): Promise<number[]> {
    for (;;) {
      await until(() => clock.waiting > 0 || state(worker) === WorkerState.IDLE);
      if (clock.waiting === 0) return clock.asked;
      clock.advance(clock.asked.at(-1) ?? 0);
    }
  }

  describe('delivers', () => {
    it('what is there in order, and commits each message before it sends the next', async () => {
      const committedAtReceipt: (number | undefined)[] = [];
      engine.faults.commit = () => setImmediate();
      const target = await startConsumer((message, response) => {
        committedAtReceipt.push(committed());
        ack(message, response);
      });
      await publish(...Array.from({ length: 150 }, (_, index) => index));
      const worker = subscribe(target);
      await until(() => worker.subscription.counters.delivered === 150);
      const offsets = Array.from({ length: 150 }, (_, index) => index);
      expect(target.offsets).toEqual(offsets);
      expect(committedAtReceipt).toEqual(offsets);
      expect(committed()).toBe(150);
    });

    it('the stored bytes to /messages of the host, with headers that say which message this is', async () => {
      const target = await startConsumer();
      await publish({ amount: 1 });
      await idle(subscribe(target));
      expect(target.received[0]).toMatchObject({
        url: '/messages',
        body: '{"topic":"order.created","content":{"amount":1}}',
        headers: {
          'content-type': 'application/json',
          'mmmq-dispatcher': NAME,
          'mmmq-topic': 'order.created',
          'mmmq-offset': '0',
          'mmmq-attempt': '1',
        },
      });
    });

    it('from the committed offset on', async () => {
      const target = await startConsumer();
      log.positions.set(NAME, 2);
      await publish('a', 'b', 'c', 'd');
      await idle(subscribe(target));
      expect(target.offsets).toEqual([2, 3]);
    });

    it('what arrives while it is idle, and rests again', async () => {
      const target = await startConsumer();
      const worker = subscribe(target);
      await idle(worker);
      expect(worker.subscription.nextOffset).toBe(0);
      await publish('a');
      await until(() => worker.subscription.nextOffset === 1);
      await idle(worker);
      await publish('b');
      await until(() => worker.subscription.nextOffset === 2);
      expect(target.offsets).toEqual([0, 1]);
    });

    it('what arrives in the middle of a commit or a read, without another arrival to wake it', async () => {
      const target = await startConsumer();
      engine.faults.commit = async () => {
        if (log.count < 20) await publish('in a commit');
      };
      engine.faults.read = async () => {
        if (log.count < 20) await publish('in a read');
      };
      await publish('first');
      const worker = subscribe(target);
      await idle(worker);
      expect(log.count).toBe(20);
      expect(worker.subscription.nextOffset).toBe(20);
      expect(target.offsets).toEqual(Array.from({ length: 20 }, (_, index) => index));
    });

    it('the message that arrives just as the worker goes to rest', async () => {
      const target = await startConsumer();
      const worker = subscribe(target);
      await idle(worker);
      for (let count = 1; count <= 30; count += 1) {
        await publish(count);
        // The checkpoint moves a step before the worker rests: the next arrival falls into that gap, or beside it.
        await until(() => committed() === count);
      }
      await until(() => worker.subscription.nextOffset === 30);
      expect(target.offsets).toHaveLength(30);
    });

    it('a message that another program wrote, even if it is no JSON', async () => {
      const target = await startConsumer();
      await log.append([Buffer.from('not json')]);
      await idle(subscribe(target));
      expect(target.received[0]?.body).toBe('not json');
      expect(committed()).toBe(1);
    });

    it('to one consumer while another one hangs', async () => {
      const slow = await startConsumer(silence);
      const quick = await startConsumer();
      await publish('a', 'b', 'c');
      const held = subscribe(slow, { name: 'slow' });
      await idle(subscribe(quick, { name: 'quick' }));
      expect(quick.offsets).toEqual([0, 1, 2]);
      await until(() => slow.received.length === 1);
      expect(held.subscription.nextOffset).toBe(0);
    });
  });

  describe('after NACK', () => {
    it('sends again after 1, 2 and 4 s, then keeps a dead letter, commits and goes on', async () => {
      const target = await startConsumer(nack, nack, nack, nack, ack);
      await publish('poison', 'good');
      const worker = subscribe(target);
      expect(await passWaitsOf(worker)).toEqual([1_000, 2_000, 4_000]);
      expect(target.offsets).toEqual([0, 0, 0, 0, 1]);
      expect(target.received.map(({ headers }) => headers['mmmq-attempt'])).toEqual(['1', '2', '3', '4', '1']);
      expect(committed()).toBe(2);
      expect(deadLetters.map(({ topic }) => topic)).toEqual([`dlq.${NAME}`]);
      expect(JSON.parse(String(deadLetters[0]?.content))).toEqual({
        topic: 'order.created',
        offset: 0,
        attempts: 4,
        reason: 'NACK also after 3 resends',
        answer: { status: 200, body: '{"acknowledgement":"NACK"}' },
        message: { topic: 'order.created', content: 'poison' },
      });
      expect(worker.subscription.counters).toEqual({
        delivered: 1,
        deadLettered: 1,
        passed: 0,
        skippedCorrupt: 0,
        nacked: 4,
        improper: 0,
      });
    });

    it('is content with the ACK of a resend', async () => {
      const target = await startConsumer(nack, ack);
      await publish('a');
      await passWaitsOf(subscribe(target));
      expect(deadLetters).toEqual([]);
      expect(committed()).toBe(1);
    });

    it('keeps a dead letter at once when no resend is allowed', async () => {
      const target = await startConsumer(nack, ack);
      await publish('a', 'b');
      const worker = subscribe(target, { maxResends: 0 });
      expect(await passWaitsOf(worker)).toEqual([]);
      expect(target.offsets).toEqual([0, 1]);
      expect(deadLetters).toHaveLength(1);
    });

    it('keeps a dead letter at once, with the reason, when the consumer asks for no resend', async () => {
      const refusal = '{"acknowledgement":"NACK","retry":false,"reason":"unknown customer"}';
      const target = await startConsumer((_message, response) => answer(response, 200, refusal), ack);
      await publish('a', 'b');
      expect(await passWaitsOf(subscribe(target))).toEqual([]);
      expect(target.offsets).toEqual([0, 1]);
      expect(JSON.parse(String(deadLetters[0]?.content))).toMatchObject({ attempts: 1, reason: 'unknown customer' });
    });

    it('gives a reason of its own where the consumer gives an empty one', async () => {
      const refusal = '{"acknowledgement":"NACK","retry":false,"reason":""}';
      const target = await startConsumer((_message, response) => answer(response, 200, refusal));
      await publish('a');
      await idle(subscribe(target));
      expect(JSON.parse(String(deadLetters[0]?.content))).toMatchObject({ reason: 'NACK that asks for no resend' });
    });

    it('waits while the dead letter cannot be written: the message is not sent again, the checkpoint stays', async () => {
      const target = await startConsumer(nack, ack);
      await publish('a', 'b');
      deadLetterFailures = 2;
      const worker = subscribe(target, { maxResends: 0 });
      await until(() => clock.waiting === 1);
      expect(committed()).toBe(0);
      expect(target.offsets).toEqual([0]);
      expect(worker.subscription).toMatchObject({
        state: WorkerState.BACKING_OFF,
        lastProblem: { reason: 'the dead letter cannot be written (ENOSPC)' },
      });
      expect(await passWaitsOf(worker)).toEqual([1_000, 2_000]);
      expect(target.offsets).toEqual([0, 1]);
      expect(deadLetters).toHaveLength(1);
      expect(committed()).toBe(2);
    });

    it('has the dead letter in place before it commits', async () => {
      const lettersAtCommit: number[] = [];
      engine.faults.commit = () => void lettersAtCommit.push(deadLetters.length);
      const target = await startConsumer(nack, ack);
      await publish('a', 'b');
      await idle(subscribe(target, { maxResends: 0 }));
      expect(lettersAtCommit).toEqual([1, 1]);
    });

    it('writes one dead letter even if the commit after it fails', async () => {
      let failures = 2;
      engine.faults.commit = () => {
        if (failures-- > 0) throw new Error('EIO');
      };
      const target = await startConsumer(nack);
      await publish('a');
      await passWaitsOf(subscribe(target, { maxResends: 0 }));
      expect(deadLetters).toHaveLength(1);
      expect(target.offsets).toEqual([0]);
    });

    it('leaves a dead letter of a dead letter where it is', async () => {
      const target = await startConsumer(nack);
      const letters = engine.withTopic('dlq.billing', [Buffer.from('{"topic":"dlq.billing","content":{}}')]);
      const worker = subscribe(target, { maxResends: 1 }, letters);
      await passWaitsOf(worker);
      expect(deadLetters).toEqual([]);
      expect(letters.positions.get(NAME)).toBe(1);
      expect(worker.subscription.counters).toMatchObject({ passed: 1, deadLettered: 0, nacked: 2 });
    });
  });

  describe('without a proper answer', () => {
    it('backs off 1, 2, 4 … 60 s until a proper answer ends the run, and uses up no resend', async () => {
      const down = Array.from({ length: 8 }, () => status(503));
      const target = await startConsumer(...down, nack, status(500), status(404), nack, ack);
      await publish('a');
      const worker = subscribe(target, { maxResends: 2 });
      const seconds = (await passWaitsOf(worker)).map((ms) => ms / 1_000);
      expect(seconds).toEqual([1, 2, 4, 8, 16, 32, 60, 60, /* NACK */ 1, /* 500, 404 */ 1, 2, /* NACK */ 2]);
      expect(deadLetters).toEqual([]);
      expect(worker.subscription.counters).toMatchObject({ delivered: 1, nacked: 2, improper: 10 });
      expect(target.received.at(-1)?.headers['mmmq-attempt']).toBe('13');
    });

    it('waits as long as Retry-After asks, up to the longest wait, and ignores nonsense in it', async () => {
      const target = await startConsumer(unavailable('30'), unavailable('600'), unavailable('soon'), unavailable('1'), ack);
      await publish('a');
      expect(await passWaitsOf(subscribe(target))).toEqual([30_000, 60_000, 4_000, 8_000]);
    });

    it('adds up to a tenth at random to every wait', async () => {
      random = 0.5;
      const target = await startConsumer(status(503), unavailable('30'), nack, ack);
      await publish('a');
      expect(await passWaitsOf(subscribe(target))).toEqual([1_050, 31_500, 1_050]);
    });

    it('takes a client that throws for a consumer that did not answer', async () => {
      const target = await startConsumer();
      await publish('a');
      jest.spyOn(client, 'post').mockRejectedValueOnce(new Error('broken interceptor'));
      const worker = subscribe(target);
      await passWaitsOf(worker);
      expect(worker.subscription.counters).toMatchObject({ improper: 1, delivered: 1 });
    });

    it('says so while the wait grows, every tenth time after that, and when it is over, and names the consumer', async () => {
      const target = await startConsumer(...Array.from({ length: 20 }, () => status(503)), ack);
      await publish('a');
      const warn = jest.spyOn(Logger.prototype, 'warn');
      await passWaitsOf(subscribe(target));
      expect(warn.mock.calls).toHaveLength(9);
      expect(warn.mock.calls[1]?.[0]).toContain(
        `dispatcher order-dispatcher, topic order.created, offset 0: attempt 2: no proper answer from ${target.url}/messages (status 503)`,
      );
      expect(logged.at(-1)).toContain('attempt 21: the consumer answers properly again');
    });
  });

  describe('when the disk fails', () => {
    it('waits with the next message until the commit succeeds, and sends nothing meanwhile', async () => {
      let failures = 2;
      engine.faults.commit = () => {
        if (failures-- > 0) throw new Error('EIO');
      };
      const target = await startConsumer();
      await publish('a', 'b');
      const worker = subscribe(target);
      await until(() => clock.waiting === 1);
      expect(worker.subscription).toMatchObject({ state: WorkerState.BACKING_OFF, nextOffset: 0 });
      expect(await passWaitsOf(worker)).toEqual([1_000, 2_000]);
      expect(target.offsets).toEqual([0, 1]);
      expect(committed()).toBe(2);
    });

    it('tries a read again and skips nothing', async () => {
      let failures = 3;
      engine.faults.read = () => {
        if (failures-- > 0) throw new Error('EIO');
      };
      const target = await startConsumer();
      await publish('a', 'b');
      const worker = subscribe(target);
      expect(await passWaitsOf(worker)).toEqual([1_000, 2_000, 4_000]);
      expect(target.offsets).toEqual([0, 1]);
      expect(worker.subscription.counters.skippedCorrupt).toBe(0);
    });

    it('waits with its first delivery until it has its checkpoint', async () => {
      jest.spyOn(log, 'committed').mockRejectedValueOnce(new Error('ENOSPC')).mockRejectedValueOnce(new Error('ENOSPC'));
      const target = await startConsumer();
      await publish('a');
      const worker = subscribe(target);
      await until(() => clock.waiting === 1);
      expect(worker.subscription.nextOffset).toBeUndefined();
      expect(await passWaitsOf(worker)).toEqual([1_000, 2_000]);
      expect(target.offsets).toEqual([0]);
    });

    it('skips a corrupt entry with a commit and delivers its neighbours', async () => {
      await publish('a', 'b', 'c', 'd');
      log.corrupt.add(1).add(3);
      const target = await startConsumer();
      const worker = subscribe(target);
      await idle(worker);
      expect(target.offsets).toEqual([0, 2]);
      expect(committed()).toBe(4);
      expect(worker.subscription.counters).toMatchObject({ delivered: 2, skippedCorrupt: 2 });
      expect(logged).toContainEqual(
        'dispatcher order-dispatcher, topic order.created, offset 1: corrupt entry skipped (the checksum does not fit)',
      );
    });

    it('does not take an answer for another offset as its own', async () => {
      await publish('a', 'b');
      jest
        .spyOn(log, 'read')
        .mockResolvedValueOnce([{ offset: 1, payload: Buffer.from('{}') }])
        .mockResolvedValueOnce([]);
      const target = await startConsumer();
      expect(await passWaitsOf(subscribe(target))).toEqual([1_000, 2_000]);
      expect(target.offsets).toEqual([0, 1]);
    });
  });

  describe('while it waits', () => {
    it.each<[string, () => TestAnswer]>([
      ['after an improper answer', () => status(503)],
      ['after NACK', () => nack],
      [
        'with a dead letter',
        () => {
          deadLetterFailures = 1;
          return (_message, response) => answer(response, 200, '{"acknowledgement":"NACK","retry":false}');
        },
      ],
      [
        'with a commit',
        () => {
          engine.faults.commit = (_topic, _dispatcher, nextOffset) => {
            if (nextOffset === 3) throw new Error('EIO');
          };
          return ack;
        },
      ],
    ])('%s it holds no message in memory', async (_when, arrange) => {
      const collectGarbage = garbageCollector();
      const read = log.read.bind(log);
      const given: WeakRef<Buffer>[] = [];
      // Copies, as the log in memory keeps its own; and no mock, which would keep what it gave.
      log.read = async (offset, limits) =>
        (await read(offset, limits)).map((entry) => {
          const payload = Buffer.from(entry.payload ?? '');
          given.push(new WeakRef(payload));
          return { offset: entry.offset, payload };
        });
      const third = arrange();
      const target = await startConsumer(ack, ack, third);
      await publish('a', 'b', 'c', 'd');
      subscribe(target);
      await until(() => clock.waiting === 1);
      expect(given).toHaveLength(4);
      await until(() => {
        collectGarbage();
        return given.every((payload) => payload.deref() === undefined);
      });
    });

    it('has dropped what it read ahead: it reads the message alone before each further attempt, and ahead again when it is through', async () => {
      const reads = noteReads();
      const target = await startConsumer(ack, ack, status(503), nack, ack);
      await publish('a', 'b', 'c', 'd', 'e');
      await passWaitsOf(subscribe(target));
      expect(reads).toEqual(['0+1', '1+64', '2+1', '2+1', '3+64']);
      expect(target.received.map(({ offset, attempt }) => `${offset}/${attempt}`)).toEqual([
        '0/1',
        '1/1',
        '2/1',
        '2/2',
        '2/3',
        '3/1',
        '4/1',
      ]);
      expect(new Set(target.received.filter(({ offset }) => offset === 2).map(({ body }) => body)).size).toBe(1);
    });

    it('reads nothing ahead for a consumer that has taken nothing yet, also after it was idle', async () => {
      const reads = noteReads();
      const target = await startConsumer();
      const worker = subscribe(target);
      await publish('a', 'b');
      await until(() => worker.subscription.nextOffset === 2);
      await idle(worker);
      await publish('c');
      await until(() => worker.subscription.nextOffset === 3);
      expect(reads).toEqual(['0+1', '1+64', '2+1']);
    });

    it('may lose the message to corruption, and then skips it', async () => {
      const target = await startConsumer(status(503), ack);
      await publish('a', 'b');
      const worker = subscribe(target);
      await until(() => clock.waiting === 1);
      log.corrupt.add(0);
      expect(await passWaitsOf(worker)).toEqual([1_000]);
      expect(target.offsets).toEqual([0, 1]);
      expect(committed()).toBe(2);
      expect(worker.subscription.counters).toMatchObject({ delivered: 1, skippedCorrupt: 1, improper: 1 });
    });

    it('may lose a dead letter to corruption, and then skips it', async () => {
      deadLetterFailures = 1;
      const target = await startConsumer(nack, ack);
      await publish('a', 'b');
      const worker = subscribe(target, { maxResends: 0 });
      await until(() => clock.waiting === 1);
      log.corrupt.add(0);
      await passWaitsOf(worker);
      expect(deadLetters).toEqual([]);
      expect(committed()).toBe(2);
      expect(worker.subscription.counters).toMatchObject({ delivered: 1, deadLettered: 0, skippedCorrupt: 1 });
    });

    it('keeps a message whose reading fails when the wait is over, and counts its attempts on', async () => {
      let reads = 0;
      engine.faults.read = () => {
        reads += 1;
        if (reads === 2 || reads === 3) throw new Error('EIO');
      };
      const target = await startConsumer(status(503), ack);
      await publish('a');
      const worker = subscribe(target);
      expect(await passWaitsOf(worker)).toEqual([1_000, 1_000, 2_000]);
      expect(target.received.map(({ attempt }) => attempt)).toEqual([1, 2]);
      expect(worker.subscription.counters).toMatchObject({ delivered: 1, skippedCorrupt: 0 });
    });
  });

  describe('while others of its dispatcher have the turns', () => {
    /** A consumer that answers when it is told to. */
    const posts: { readonly body: string; readonly answer: () => void }[] = [];

    beforeEach(() => {
      turns = new Turns(1);
      posts.length = 0;
      const body = Buffer.from('{"acknowledgement":"ACK"}');
      client = {
        post: (request) =>
          new Promise((resolve) => {
            posts.push({ body: request.body.toString(), answer: () => resolve({ kind: 'answer', status: 200, body }) });
          }),
        close: () => Promise.resolve(),
      };
    });

    /** A worker that has read ahead and waits behind the attempt of another one. */
    async function waiting(): Promise<{ worker: DispatcherWorker; reads: string[] }> {
      const target = await startConsumer();
      const other = engine.withTopic('order.other');
      await other.append([Buffer.from('other')]);
      await publish('a', 'b', 'c');
      const reads = noteReads();
      const worker = subscribe(target);
      await until(() => posts.length === 1);
      // It joins the line in the middle of the first attempt, and so comes before the second one.
      subscribe(target, {}, other);
      await until(() => other.positions.get(NAME) === 0);
      posts[0]?.answer();
      await until(() => posts.length === 2 && committed() === 1);
      expect(posts[1]?.body).toBe('other');
      return { worker, reads };
    }

    it('sends nothing, and reads when its turn has come: no message is held, and no time of the attempt is spent', async () => {
      const { worker, reads } = await waiting();
      await setImmediate();
      expect([posts.length, reads, state(worker)]).toEqual([2, ['0+1'], WorkerState.DRAINING]);
      posts[1]?.answer();
      await until(() => posts.length === 3);
      expect(posts[2]?.body).toContain('"b"');
      posts[2]?.answer();
      await until(() => posts.length === 4);
      expect(reads).toEqual(['0+1', '1+1', '2+64']);
      posts[3]?.answer();
      await idle(worker);
    });

    it('is stopped at once', async () => {
      const { worker } = await waiting();
      await worker.stop();
      expect(worker.subscription).toMatchObject({ state: WorkerState.STOPPED, nextOffset: 1, lastProblem: undefined });
      posts[1]?.answer();
      await setImmediate();
      expect(posts).toHaveLength(2);
    });

    it('leaves its turn to them while its own disk fails', async () => {
      const target = await startConsumer();
      const other = engine.withTopic('order.other');
      await other.append([Buffer.from('other')]);
      await publish('a');
      engine.faults.read = (topic) => {
        if (topic === log.topic) throw new Error('EIO');
      };
      const worker = subscribe(target);
      await until(() => state(worker) === WorkerState.BACKING_OFF);
      subscribe(target, {}, other);
      await until(() => posts.length === 1);
      expect(posts[0]?.body).toBe('other');
      posts[0]?.answer();
    });
  });

  describe('when stopped', () => {
    it('begins no message of those that it has read ahead', async () => {
      const target = await startConsumer();
      await publish('a', 'b', 'c', 'd');
      let stopped: Promise<void> | undefined;
      const commit = log.commit.bind(log);
      log.commit = async (dispatcher, nextOffset) => {
        await commit(dispatcher, nextOffset);
        if (nextOffset === 2) stopped = worker.stop();
      };
      const worker = subscribe(target);
      await until(() => stopped !== undefined);
      await stopped;
      expect(worker.subscription).toMatchObject({ state: WorkerState.STOPPED, nextOffset: 2 });
      expect(target.offsets).toEqual([0, 1]);
    });

    it('begins no attempt when the message has been read again meanwhile', async () => {
      const target = await startConsumer(status(503), ack);
      await publish('a');
      const worker = subscribe(target);
      await until(() => clock.waiting === 1);
      let stopped: Promise<void> | undefined;
      engine.faults.read = () => {
        stopped = worker.stop();
      };
      clock.advance(1_000);
      await until(() => stopped !== undefined);
      await stopped;
      expect(target.offsets).toEqual([0]);
      expect(state(worker)).toBe(WorkerState.STOPPED);
    });

    describe('and the log is closed', () => {
      const late: readonly [string, ConsumerReply][] = [
        ['ACK', { kind: 'answer', status: 200, body: Buffer.from('{"acknowledgement":"ACK"}') }],
        ['NACK', { kind: 'answer', status: 200, body: Buffer.from('{"acknowledgement":"NACK"}') }],
        ['a failure', { kind: 'failure', reason: 'late' }],
      ];
      it.each(late)('ends quietly when a client that ignores its signal brings %s late', async (_what, reply) => {
        const { engine: files } = fileEngine(await newDirectory());
        await files.open();
        const topicLog = await files.create('order.created');
        await topicLog.append([Buffer.from('{}'), Buffer.from('{}')]);
        const target = await startConsumer();
        let bring: ((late: ConsumerReply) => void) | undefined;
        const post = jest.spyOn(client, 'post').mockReturnValue(new Promise((resolve) => (bring = resolve)));
        const unhandled = jest.fn();
        process.on('unhandledRejection', unhandled);
        try {
          const worker = subscribe(target, {}, topicLog);
          await until(() => post.mock.calls.length === 1);
          const stopped = worker.stop();
          clock.advance(5_000);
          await until(() => clock.asked.length === 2);
          clock.advance(1_000);
          await stopped;
          await files.close();
          const loggedBefore = logged.length;
          bring?.(reply);
          await until(() => state(worker) === WorkerState.STOPPED);
          await setImmediate();
          expect(unhandled).not.toHaveBeenCalled();
          expect(worker.subscription).toMatchObject({ nextOffset: 0, counters: { delivered: 0, improper: 0 } });
          expect(clock.waiting).toBe(0);
          expect(logged).toHaveLength(loggedBefore);
          expect(post).toHaveBeenCalledTimes(1);
        } finally {
          process.off('unhandledRejection', unhandled);
          await files.close();
        }
      });

      const closed = (): never => {
        throw new MmmqError(ErrorCode.CLOSED, 'the broker is stopped');
      };
      it.each<[string, () => unknown]>([
        ['its checkpoint', () => (log.committed = closed)],
        ['a read', () => (engine.faults.read = closed)],
        ['a dead letter', () => (appendDeadLetter = closed)],
        ['a commit', () => (engine.faults.commit = closed)],
      ])('ends with %s, although nobody told it to, and tries nothing again', async (_what, close) => {
        close();
        const target = await startConsumer(nack);
        await publish('a', 'b');
        const worker = subscribe(target, { maxResends: 0 });
        await until(() => state(worker) === WorkerState.STOPPED);
        expect(clock.asked).toEqual([]);
        await worker.stop();
      });
    });

    it('ends a wait at once, and leaves the message for the next start', async () => {
      const target = await startConsumer(status(503));
      await publish('a');
      const worker = subscribe(target);
      await until(() => clock.waiting === 1);
      await worker.stop();
      expect(worker.subscription).toMatchObject({ state: WorkerState.STOPPED, nextOffset: 0 });
      expect(committed()).toBe(0);
      expect(target.offsets).toEqual([0]);
    });

    it('lets the attempt under way finish and commits it, and begins no other', async () => {
      let finish: (() => void) | undefined;
      const target = await startConsumer((message, response) => {
        finish = () => ack(message, response);
      });
      await publish('a', 'b');
      const worker = subscribe(target);
      await until(() => target.received.length === 1);
      const stopped = worker.stop();
      finish?.();
      await stopped;
      expect(worker.subscription).toMatchObject({ state: WorkerState.STOPPED, nextOffset: 1 });
      expect(committed()).toBe(1);
      expect(target.offsets).toEqual([0]);
    });

    it('is stopped, not idle, when the attempt under way was the last one', async () => {
      let finish: (() => void) | undefined;
      const target = await startConsumer((message, response) => {
        finish = () => ack(message, response);
      });
      await publish('a');
      const worker = subscribe(target);
      await until(() => target.received.length === 1);
      const stopped = worker.stop();
      finish?.();
      await stopped;
      expect(worker.subscription).toMatchObject({ state: WorkerState.STOPPED, nextOffset: 1 });
    });

    it('tries no commit again', async () => {
      let commits = 0;
      engine.faults.commit = () => {
        commits += 1;
        throw new Error('EIO');
      };
      const target = await startConsumer();
      await publish('a');
      const worker = subscribe(target);
      await until(() => clock.waiting === 1);
      await worker.stop();
      expect(commits).toBe(1);
      expect(state(worker)).toBe(WorkerState.STOPPED);
    });

    it('aborts an attempt that has no answer after 5 s', async () => {
      const target = await startConsumer(silence);
      await publish('a');
      const worker = subscribe(target);
      await until(() => target.received.length === 1);
      const stopped = worker.stop();
      clock.advance(4_999);
      expect(state(worker)).toBe(WorkerState.DRAINING);
      clock.advance(1);
      await stopped;
      expect(worker.subscription).toMatchObject({ state: WorkerState.STOPPED, nextOffset: 0, counters: { improper: 0 } });
      expect(committed()).toBe(0);
    });

    it('is bounded also with a client that cannot be aborted', async () => {
      const target = await startConsumer();
      await publish('a');
      let answerNow: (() => void) | undefined;
      const post = jest.spyOn(client, 'post').mockReturnValueOnce(
        new Promise((resolve) => {
          answerNow = () => resolve({ kind: 'failure', reason: 'late' });
        }),
      );
      const worker = subscribe(target);
      await until(() => post.mock.calls.length === 1);
      const stopped = worker.stop();
      clock.advance(5_000);
      await until(() => clock.asked.length === 2);
      clock.advance(1_000);
      await stopped;
      expect(logged.at(-1)).toContain('did not stop in time');
      answerNow?.();
      await until(() => state(worker) === WorkerState.STOPPED);
    });

    it('hears no arrival any more', async () => {
      const target = await startConsumer();
      const end = jest.fn();
      const listen = log.onArrival.bind(log);
      jest.spyOn(log, 'onArrival').mockImplementation((listener) => {
        listen(listener);
        return end;
      });
      const worker = subscribe(target);
      await idle(worker);
      await worker.stop();
      expect(end).toHaveBeenCalledTimes(1);
      await publish('a');
      expect(state(worker)).toBe(WorkerState.STOPPED);
      expect(target.received).toEqual([]);
    });
  });

  it('never logs what a message or an answer says', async () => {
    const secret = 'secret-4711';
    const refusal = `{"acknowledgement":"NACK","retry":false,"reason":"${secret}"}`;
    const target = await startConsumer(
      (_message, response) => answer(response, 500, secret),
      (_message, response) => answer(response, 200, secret),
      (_message, response) => answer(response, 200, `{"acknowledgement":"${secret}"}`),
      nack,
      (_message, response) => answer(response, 200, refusal),
    );
    await publish(secret);
    await passWaitsOf(subscribe(target));
    expect(deadLetters).toHaveLength(1);
    expect(logged.length).toBeGreaterThan(4);
    expect(logged.filter((line) => line.includes(secret))).toEqual([]);
  });
});
