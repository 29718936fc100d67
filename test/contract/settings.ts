import { afterEach } from '@jest/globals';
import type { Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ConsumerModule } from '../../src/consumer/index.js';
import { Dispatcher, DispatcherRegistry, Host, TopicPattern, TopicQueueService, WorkerState } from '../../src/index.js';
import { Producer, type ProducerOptions } from '../../src/producer/index.js';
import { deadLetterIn, type TestingDeadLetter } from '../../src/testing/stored-messages.js';
import { deliveriesOf } from '../../src/testing/testing-delivery.js';
import { TestingBroker, type ConsumerFault, type TestingDelivery, type TestingDispatcher } from '../../src/testing/index.js';
import { brokerApplication, SILENT } from '../support/broker-application.js';
import { consumerApplication } from '../support/consumer-application.js';
import { FaultyProxy } from '../support/faulty-proxy.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

/** What a test does with a broker and the consumer behind it, whichever broker it is. */
export interface Setting<Listeners> {
  readonly listeners: Listeners;
  readonly producer: Producer;
  injectFault(fault: ConsumerFault, times?: number): void;
  drain(): Promise<void>;
  deliveries(): readonly TestingDelivery[];
  deadLetters(): Promise<readonly TestingDeadLetter[]>;
}

/** Of the dispatcher, whose patterns are `order.**` and `mail.*`. */
export type SettingOptions = Omit<TestingDispatcher, 'name' | 'patterns'>;

type OpenSetting = <Listeners extends object>(options: SettingOptions, listeners: Type<Listeners>) => Promise<Setting<Listeners>>;

/** The waits are those of tests on the real broker as well, whose clock is the real one. */
const BACKOFF = { initialMs: 2, maxMs: 10 };
const DISPATCHER = { name: 'orders', patterns: ['order.**', 'mail.*'] };

/** The testing kit's broker, and the real one with files, sockets and a proxy that makes the faults. To be called at the top of a spec. */
export function settings(): readonly (readonly [name: string, open: OpenSetting])[] {
  const newDirectory = temporaryDirectories();
  const stops: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0).toReversed()) await stop();
  });

  const inMemory: OpenSetting = async (options, listeners) => {
    const broker = await TestingBroker.start();
    stops.push(() => broker.close());
    const builder = Test.createTestingModule({ imports: [ConsumerModule.forRoot()], providers: [listeners] }).setLogger(SILENT);
    const module = await broker.compile(builder, [{ ...DISPATCHER, backoff: BACKOFF, ...options }]);
    await module.init();
    stops.push(() => module.close());
    return {
      listeners: module.get(listeners),
      producer: await producerOf({ broker: 'http://broker.test', transport: broker.transport }),
      injectFault: (fault, times = 1) => broker.injectFault(fault, { times }),
      drain: () => broker.drain(),
      deliveries: () => broker.deliveries,
      deadLetters: async () => broker.deadLetters,
    };
  };

  const overSockets: OpenSetting = async (options, listeners) => {
    const rootDir = await newDirectory();
    const consuming = await consumerApplication({ metadata: { providers: [listeners] } });
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
      listeners: consuming.app.get(listeners),
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
  };

  const producerOf = async (options: ProducerOptions): Promise<Producer> => {
    const producer = await Producer.open(options);
    stops.push(() => producer.close());
    return producer;
  };

  return [
    ['in memory', inMemory],
    ['over real sockets', overSockets],
  ];
}
