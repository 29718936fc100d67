import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ConsumerModule, type MessageContext, MessageListener, Reject, RetryLater } from '../../src/consumer/index.js';
import { Dispatcher, DispatcherRegistry, Host, TopicPattern, TopicQueueService, WorkerState } from '../../src/index.js';
import { Producer, type ProducerOptions } from '../../src/producer/index.js';
import { deliveriesOf } from '../../src/testing/testing-delivery.js';
import { TestingBroker, type ConsumerFault, type TestingDelivery, type TestingDispatcher } from '../../src/testing/index.js';
import { brokerApplication, SILENT } from '../support/broker-application.js';
import { consumerApplication } from '../support/consumer-application.js';
import { FaultyProxy } from '../support/faulty-proxy.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { deadLetterIn, type TestingDeadLetter } from '../../src/testing/stored-messages.js';
import { until } from '../support/until.js';

/** What a test does with a broker and the consumer behind it, whichever broker it is. */
interface Setting {
  readonly listeners: Listeners;
  readonly producer: Producer;
  injectFault(fault: ConsumerFault, times?: number): void;
  drain(): Promise<void>;
  deliveries(): readonly TestingDelivery[];
  deadLetters(): Promise<readonly TestingDeadLetter[]>;
}

@Injectable()
class Listeners {
  readonly handled: (readonly [unknown, MessageContext])[] = [];
  act: (content: unknown, context: MessageContext) => unknown = () => undefined;

  @MessageListener('order.**')
  async onOrder(content: unknown, context: MessageContext): Promise<void> {
    this.handled.push([content, context]);
    await this.act(content, context);
  }
}

type Options = Omit<TestingDispatcher, 'name' | 'patterns'>;
const newDirectory = temporaryDirectories();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

/** The waits are those of tests on the real broker as well, whose clock is the real one. */
const BACKOFF = { initialMs: 2, maxMs: 10 };
const DISPATCHER = { name: 'orders', patterns: ['order.**', 'mail.*'] };

async function inMemory(options: Options): Promise<Setting> {
  const broker = await TestingBroker.start();
  stops.push(() => broker.close());
  const builder = Test.createTestingModule({ imports: [ConsumerModule.forRoot()], providers: [Listeners] }).setLogger(SILENT);
  const module = await broker.compile(builder, [{ ...DISPATCHER, backoff: BACKOFF, ...options }]);
  await module.init();
  stops.push(() => module.close());
  return {
    listeners: module.get(Listeners),
    producer: await producerOf({ broker: 'http://broker.test', transport: broker.transport }),
    injectFault: (fault, times = 1) => broker.injectFault(fault, { times }),
    drain: () => broker.drain(),
    deliveries: () => broker.deliveries,
    deadLetters: async () => broker.deadLetters,
  };
}

async function overSockets(options: Options): Promise<Setting> {
  const rootDir = await newDirectory();
  const consuming = await consumerApplication({ metadata: { providers: [Listeners] } });
  stops.push(() => consuming.app.close());
  const proxy = await FaultyProxy.before(consuming.url);
  stops.push(() => proxy.stop());
  const patterns = DISPATCHER.patterns.map((pattern) => TopicPattern.of(pattern));
  const value = new Dispatcher(DISPATCHER.name, Host.of(proxy.url), patterns, { backoff: BACKOFF, ...options });
  const metadata = { providers: [{ provide: 'orders', useValue: value }] };
  const { app, url } = await brokerApplication({ broker: { storage: { rootDir } }, metadata });
  stops.push(() => app.close());
  const topicQueues = app.get(TopicQueueService);
  const subscriptions = () => app.get(DispatcherRegistry).get('orders')?.subscriptions ?? [];
  return {
    listeners: consuming.app.get(Listeners),
    producer: await producerOf({ broker: url }),
    injectFault: (fault, times = 1) => proxy.faults.push(...Array.from({ length: times }, () => fault)),
    drain: () =>
      until(() =>
        subscriptions().every(
          ({ topic, state, nextOffset }) => state === WorkerState.IDLE && nextOffset === topicQueues.topicQueue(topic)?.count,
        ),
      ),
    deliveries: () =>
      proxy.requests.flatMap(({ path, headers, body, answer }) =>
        deliveriesOf(
          { path, headers: headers as Record<string, string>, body } as never,
          answer === undefined ? { kind: 'failure', reason: 'failed' } : { kind: 'answer', ...answer },
          Date.now(),
        ),
      ),
    deadLetters: async () => {
      const topicQueue = topicQueues.topicQueue('dlq.orders');
      const entries = (await topicQueue?.read(0, { maxCount: 100, maxBytes: 1_000_000 })) ?? [];
      return entries.map(({ payload }) => deadLetterIn('dlq.orders', payload as Buffer));
    },
  };
}

async function producerOf(options: ProducerOptions): Promise<Producer> {
  const producer = await Producer.open(options);
  stops.push(() => producer.close());
  return producer;
}

const attempts = ({ deliveries }: Setting): unknown[] => deliveries().map(({ offset, attempt, verdict }) => [offset, attempt, verdict]);

describe.each([
  ['in memory', inMemory],
  ['over real sockets', overSockets],
])('A broker %s', (_, open) => {
  it('delivers each message in order, with what its producer said of it', async () => {
    const setting = await open({});
    expect(await setting.producer.produce('order.created', { n: 1.5 }, { id: 'o-1', key: '손님', headers: { tenant: 'a b' } })).toEqual({
      outcome: 'acknowledged',
      topic: 'order.created',
      offset: 0,
      id: 'o-1',
    });
    expect(await setting.producer.produce('order.created', 'second', { id: 'o-2' })).toMatchObject({ topic: 'order.created', offset: 1 });
    await setting.producer.produce('stock.moved', 'for nobody');
    await setting.drain();
    expect(setting.deliveries()).toEqual([
      {
        dispatcher: 'orders',
        topic: 'order.created',
        offset: 0,
        attempt: 1,
        content: { n: 1.5 },
        id: 'o-1',
        key: '손님',
        headers: { tenant: 'a b' },
        verdict: 'ack',
        reason: undefined,
      },
      expect.objectContaining({ offset: 1, content: 'second', id: 'o-2', key: undefined, headers: {}, verdict: 'ack' }),
    ]);
    expect(setting.listeners.handled.map(([, { topic, offset, attempt, id }]) => [topic, offset, attempt, id])).toEqual([
      ['order.created', 0, 1, 'o-1'],
      ['order.created', 1, 1, 'o-2'],
    ]);
  });

  it('stores a message once under an id, and refuses what breaks a rule', async () => {
    const setting = await open({});
    for (let time = 0; time < 2; time += 1)
      expect(await setting.producer.produce('order.created', 1, { id: 'same' })).toMatchObject({ topic: 'order.created', offset: 0 });
    await setting.drain();
    expect(setting.deliveries()).toHaveLength(1);
    await expect(setting.producer.produce('order.created', 2, { id: 'same' })).rejects.toMatchObject({ status: 422, field: 'id' });
    await expect(setting.producer.produce('order..created', 1)).rejects.toMatchObject({ status: 400, field: 'topic' });
    await expect(setting.producer.produce('dlq.orders', 1)).rejects.toMatchObject({ status: 400, field: 'topic' });
    await expect(setting.producer.produce('Order.created', 1)).rejects.toMatchObject({ status: 409, field: 'topic' });
    await expect(setting.producer.produce('order.created', 'x'.repeat(2 * 1024 * 1024))).rejects.toMatchObject({ status: 413 });
  });

  it('takes batches, of several topics too, and each message has a verdict of its own', async () => {
    const setting = await open({});
    const results = await setting.producer.produceBatch([
      { topic: 'order.created', content: 1, id: 'a' },
      { topic: 'order.created', content: 2, id: 'a' },
      { topic: 'order.created', content: 1, id: 'a' },
      { topic: 'order.paid', content: 3 },
      { topic: 'order.created', content: 4 },
    ]);
    expect(results.map(({ receipt, error }) => receipt ?? error)).toMatchObject([
      { topic: 'order.created', offset: 0 },
      { status: 422, field: 'id' },
      { topic: 'order.created', offset: 0 },
      { topic: 'order.paid', offset: 0 },
      { topic: 'order.created', offset: 1 },
    ]);
    await setting.drain();
    const delivered = setting.deliveries().map(({ topic, offset, content }) => `${topic} ${offset} ${String(content)}`);
    expect(delivered.toSorted()).toEqual(['order.created 0 1', 'order.created 1 4', 'order.paid 0 3']);
  });

  it('sends again what is refused, and keeps it as a dead letter in the end', async () => {
    const setting = await open({ maxResends: 2 });
    setting.listeners.act = (content) => {
      if (content === 'bad') throw new Error('no such customer');
    };
    await setting.producer.produce('order.created', 'bad');
    await setting.producer.produce('order.created', 'good');
    await setting.drain();
    expect(attempts(setting)).toEqual([
      [0, 1, 'nack'],
      [0, 2, 'nack'],
      [0, 3, 'nack'],
      [1, 1, 'ack'],
    ]);
    expect(await setting.deadLetters()).toEqual([
      { dispatcher: 'orders', topic: 'order.created', offset: 0, attempts: 3, reason: 'no such customer', content: 'bad' },
    ]);
  });

  it('keeps what is rejected, or has no listener, as a dead letter at once', async () => {
    const setting = await open({});
    setting.listeners.act = () => {
      throw new Reject('never');
    };
    await setting.producer.produce('order.created', 1);
    await setting.drain();
    await setting.producer.produce('mail.sent', 2);
    await setting.drain();
    expect(setting.deliveries().map(({ topic, verdict, reason }) => [topic, verdict, reason])).toEqual([
      ['order.created', 'reject', 'never'],
      ['mail.sent', 'reject', 'no listener of the consumer matches the topic mail.sent'],
    ]);
    expect((await setting.deadLetters()).map(({ topic, attempts: sent }) => [topic, sent])).toEqual([
      ['order.created', 1],
      ['mail.sent', 1],
    ]);
  });

  it('sends again what is put off, and counts no resend', async () => {
    const setting = await open({ maxResends: 0 });
    setting.listeners.act = (_content, { attempt }) => {
      if (attempt < 4) throw new RetryLater(5);
    };
    await setting.producer.produce('order.created', 1);
    await setting.drain();
    expect(attempts(setting)).toEqual([
      [0, 1, 'improper'],
      [0, 2, 'improper'],
      [0, 3, 'improper'],
      [0, 4, 'ack'],
    ]);
  });

  it.each<[ConsumerFault, number]>([
    [{ kind: 'refused' }, 1],
    [{ kind: 'timeout' }, 3],
    [{ kind: 'answerLost' }, 3],
    [{ kind: 'status', status: 500 }, 1],
    [{ kind: 'status', status: 503, retryAfterSeconds: 0 }, 1],
    [{ kind: 'garbage' }, 1],
  ])('sends again behind the fault %j, until there is a proper answer', async (fault, calls) => {
    const setting = await open({ maxResends: 0, timeoutMs: fault.kind === 'timeout' ? 1000 : 30_000 });
    setting.injectFault(fault, 2);
    const ended: boolean[] = [];
    setting.listeners.act = async (_content, { attempt, signal }) => {
      if (fault.kind === 'timeout' && attempt < 3) await until(() => signal.aborted);
      ended.push(signal.aborted);
    };
    await setting.producer.produce('order.created', 1);
    await setting.drain();
    expect(attempts(setting)).toEqual([
      [0, 1, 'improper'],
      [0, 2, 'improper'],
      [0, 3, 'ack'],
    ]);
    await until(() => ended.length === calls);
    expect(ended.slice(0, -1)).toEqual(Array.from({ length: calls - 1 }, () => fault.kind === 'timeout'));
    expect(await setting.deadLetters()).toEqual([]);
  });

  it('delivers in batches, and tries again from the first message that is not acknowledged', async () => {
    const setting = await open({ batch: { maxMessages: 10 } });
    setting.listeners.act = (content) => {
      if (content === 2) throw new Reject('never');
    };
    setting.injectFault({ kind: 'status', status: 500 });
    for (let content = 0; content < 4; content += 1) await setting.producer.produce('order.created', content);
    await setting.drain();
    const proper = setting.deliveries().filter(({ verdict }) => verdict === 'ack' || verdict === 'reject');
    expect(proper.map(({ offset, verdict }) => [offset, verdict])).toEqual([
      [0, 'ack'],
      [1, 'ack'],
      [2, 'reject'],
      [3, 'ack'],
    ]);
    expect(await setting.deadLetters()).toMatchObject([{ offset: 2, reason: 'never', content: 2 }]);
  });
});
