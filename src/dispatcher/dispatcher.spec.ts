import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { MemoryEngine, type MemoryTopicLog } from '../../test/support/memory-engine.js';
import { silence, TestConsumer } from '../../test/support/test-consumer.js';
import { until } from '../../test/support/until.js';
import { Host, systemClock, TopicPattern } from '../core/index.js';
import { IdempotencyMemory, TopicQueue, TopicQueueInitialized } from '../topic-queue/index.js';
import { UndiciConsumerClient, type ConsumerClient } from './consumer-client/index.js';
import { Dispatcher } from './dispatcher.js';
import type { DispatcherRuntime } from './dispatcher.runtime.js';

const HOST = Host.of('http://127.0.0.1:9');
const PATTERNS = [TopicPattern.of('order.**'), TopicPattern.of('payment.*')];
const RUNTIME: DispatcherRuntime = {
  clock: systemClock,
  random: () => 0,
  topicQueues: { append: async ({ topic }) => ({ topic, offset: 0 }) },
};

const logOf = (topic: string): MemoryTopicLog => new MemoryEngine().withTopic(topic);
const initialized = (log: MemoryTopicLog): TopicQueueInitialized =>
  new TopicQueueInitialized(new TopicQueue(log, { clock: systemClock, idempotencyMemory: new IdempotencyMemory() }));

describe('Dispatcher', () => {
  let consumer: TestConsumer | undefined;
  let dispatcher: Dispatcher | undefined;

  afterEach(async () => {
    await consumer?.stop();
    await dispatcher?.stop();
    jest.restoreAllMocks();
  });

  const topics = (): string[] | undefined => dispatcher?.subscriptions.map(({ topic }) => topic);

  it('has the defaults of the settings', () => {
    expect(new Dispatcher('order-dispatcher', HOST, PATTERNS)).toMatchObject({
      name: 'order-dispatcher',
      timeoutMs: 30_000,
      maxResends: 3,
      backoff: { initialMs: 1_000, maxMs: 60_000 },
      batch: undefined,
    });
  });

  it('takes each option on its own', () => {
    expect(new Dispatcher('a', HOST, PATTERNS, { maxResends: 0, backoff: { initialMs: 5 } })).toMatchObject({
      timeoutMs: 30_000,
      maxResends: 0,
      backoff: { initialMs: 5, maxMs: 60_000 },
    });
    expect(new Dispatcher('a', HOST, PATTERNS, { batch: { maxMessages: 100 } }).batch).toEqual({ maxMessages: 100, maxBytes: 1_048_576 });
    expect(new Dispatcher('a', HOST, PATTERNS, { batch: { maxMessages: 1, maxBytes: 7 } }).batch).toEqual({ maxMessages: 1, maxBytes: 7 });
  });

  it.each([
    ['a name with a slash', () => new Dispatcher('../x', HOST, PATTERNS), /name/],
    ['a name that is kept for dead letters', () => new Dispatcher('dlq.x', HOST, PATTERNS), /dlq\./],
    ['no pattern', () => new Dispatcher('a', HOST, []), /patterns/],
    ['a time-out of zero', () => new Dispatcher('a', HOST, PATTERNS, { timeoutMs: 0 }), /timeoutMs/],
    ['half a resend', () => new Dispatcher('a', HOST, PATTERNS, { maxResends: 0.5 }), /maxResends/],
    ['waits that shrink', () => new Dispatcher('a', HOST, PATTERNS, { backoff: { initialMs: 9, maxMs: 8 } }), /maxMs/],
    ['batches without a size', () => new Dispatcher('a', HOST, PATTERNS, { batch: {} as { maxMessages: number } }), /batch\.maxMessages/],
    ['batches of nothing', () => new Dispatcher('a', HOST, PATTERNS, { batch: { maxMessages: 0 } }), /batch\.maxMessages/],
    ['batches of no bytes', () => new Dispatcher('a', HOST, PATTERNS, { batch: { maxMessages: 1, maxBytes: 0 } }), /batch\.maxBytes/],
  ])('refuses %s and names it', (_what, make, message) => {
    expect(make).toThrow(message);
  });

  it('subscribes the topics that a pattern matches, each once', async () => {
    dispatcher = new Dispatcher('a', HOST, [...PATTERNS, TopicPattern.of('order.*')]);
    dispatcher.attach(RUNTIME);
    const order = initialized(logOf('order.created'));
    dispatcher.onTopicQueueInitialized(order);
    dispatcher.onTopicQueueInitialized(order);
    for (const topic of ['news.world', 'payment.made', 'payment.made.late', 'dlq.a']) {
      dispatcher.onTopicQueueInitialized(initialized(logOf(topic)));
    }
    expect(topics()).toEqual(['order.created', 'payment.made']);
  });

  it('delivers topics beside each other: one that hangs holds back no other', async () => {
    consumer = await TestConsumer.start((message, response) => {
      if (message.headers['mmmq-topic'] === 'order.slow') silence(message, response);
      else response.end('{"acknowledgement":"ACK"}');
    });
    dispatcher = new Dispatcher('a', consumer.host, PATTERNS);
    dispatcher.attach(RUNTIME);
    const [slow, quick] = [logOf('order.slow'), logOf('order.quick')];
    for (const log of [slow, quick]) {
      await log.append([Buffer.from('{}'), Buffer.from('{}')]);
      dispatcher.onTopicQueueInitialized(initialized(log));
    }
    await until(() => quick.positions.get('a') === 2);
    expect(slow.positions.get('a')).toBe(0);
  });

  it('has 128 attempts under way at most, takes the other topics in their order, and holds back no other dispatcher', async () => {
    const attempts: { readonly topic: string; readonly fail: () => void }[] = [];
    const client: ConsumerClient = {
      post: ({ headers }) =>
        new Promise((resolve) => {
          const fail = (): void => resolve({ kind: 'failure', reason: 'it hung' });
          attempts.push({ topic: `${headers['mmmq-dispatcher']} ${headers['mmmq-topic']}`, fail });
        }),
      close: async () => attempts.forEach(({ fail }) => fail()),
    };
    const logs = await Promise.all(
      Array.from({ length: 130 }, async (_, index) => {
        const log = logOf(`order.${index}`);
        await log.append([Buffer.from('{}')]);
        return log;
      }),
    );
    const [a, b] = [new Dispatcher('a', HOST, PATTERNS, { client }), new Dispatcher('b', HOST, PATTERNS, { client })];
    for (const one of [a, b]) one.attach(RUNTIME);
    for (const log of logs) a.onTopicQueueInitialized(initialized(log));
    await until(() => attempts.length >= 128);
    await setImmediate();
    expect(attempts.map(({ topic }) => topic)).toEqual(Array.from({ length: 128 }, (_, index) => `a order.${index}`));
    for (const log of logs.slice(0, 1)) b.onTopicQueueInitialized(initialized(log));
    await until(() => attempts.length === 129);
    expect(attempts[128]?.topic).toBe('b order.0');
    attempts[5]?.fail();
    await until(() => attempts.length === 130);
    expect(attempts[129]?.topic).toBe('a order.128');

    const stopped = Promise.all([a.stop(), b.stop()]);
    await client.close();
    await stopped;
    expect(attempts).toHaveLength(130);
  });

  it('is run by one broker at a time, and by another one after that', async () => {
    dispatcher = new Dispatcher('a', HOST, PATTERNS);
    dispatcher.attach(RUNTIME);
    expect(() => dispatcher?.attach(RUNTIME)).toThrow('dispatcher "a" is already run by a broker');
    dispatcher.onTopicQueueInitialized(initialized(logOf('order.created')));
    await dispatcher.stop();
    expect(topics()).toEqual([]);
    dispatcher.attach(RUNTIME);
    dispatcher.onTopicQueueInitialized(initialized(logOf('order.created')));
    expect(topics()).toEqual(['order.created']);
  });

  it('hears of no topic before it is run or after it is stopped', async () => {
    dispatcher = new Dispatcher('a', HOST, PATTERNS);
    dispatcher.onTopicQueueInitialized(initialized(logOf('order.created')));
    expect(topics()).toEqual([]);
    dispatcher.attach(RUNTIME);
    await dispatcher.stop();
    dispatcher.onTopicQueueInitialized(initialized(logOf('order.created')));
    expect(topics()).toEqual([]);
  });

  it('closes the client that it made and leaves alone the one that it was given', async () => {
    const close = jest.spyOn(UndiciConsumerClient.prototype, 'close');
    for (const [options, closed] of [
      [{}, 1],
      [{ client: new UndiciConsumerClient() }, 1],
    ] as const) {
      dispatcher = new Dispatcher('a', HOST, PATTERNS, options);
      dispatcher.attach(RUNTIME);
      dispatcher.onTopicQueueInitialized(initialized(logOf('order.created')));
      await dispatcher.stop();
      expect(close).toHaveBeenCalledTimes(closed);
    }
  });

  it('stops although its connections do not close cleanly', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    jest.spyOn(UndiciConsumerClient.prototype, 'close').mockRejectedValueOnce(new Error('broken'));
    dispatcher = new Dispatcher('a', HOST, PATTERNS);
    dispatcher.attach(RUNTIME);
    dispatcher.onTopicQueueInitialized(initialized(logOf('order.created')));
    await dispatcher.stop();
    expect(warn).toHaveBeenCalledTimes(1);
  });
});
