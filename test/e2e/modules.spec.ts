import { afterEach, describe, expect, it } from '@jest/globals';
import { HttpModule, HttpService } from '@nestjs/axios';
import { Inject, Injectable, Module, type INestApplicationContext } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { NestFactory } from '@nestjs/core';
import {
  BrokerModule,
  Dispatcher,
  DispatcherModule,
  DispatcherRegistry,
  HttpServiceConsumerClient,
  Host,
  InjectDispatcher,
  messageOf,
  TOPIC_QUEUE_INITIALIZED,
  TopicPattern,
  TopicQueueInitialized,
  TopicQueueService,
  WebProtocol,
} from '../../src/index.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { TestConsumer } from '../support/test-consumer.js';
import { until } from '../support/until.js';

const newDirectory = temporaryDirectories();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function startConsumer(): Promise<TestConsumer> {
  const consumer = await TestConsumer.start();
  stops.push(() => consumer.stop());
  return consumer;
}

async function start(module: object): Promise<INestApplicationContext> {
  const app = await NestFactory.createApplicationContext(module as never, { logger: false, abortOnError: false });
  stops.push(() => app.close());
  return app;
}

describe('an application of modules', () => {
  it('runs what is declared as a user declares beans, in a list and by a factory, and injects it wherever it is asked for', async () => {
    const rootDir = await newDirectory();
    const [beans, listed, made] = [await startConsumer(), await startConsumer(), await startConsumer()];
    const heard: string[] = [];

    @Module({
      providers: [
        {
          provide: 'order-dispatcher',
          useFactory: () =>
            new Dispatcher('order-dispatcher', new Host(WebProtocol.HTTP, '127.0.0.1', beans.port), [new TopicPattern('order.**')]),
        },
      ],
    })
    class OrdersModule {}

    @Injectable()
    class Publisher {
      constructor(
        @Inject(TopicQueueService) readonly topicQueues: TopicQueueService,
        @Inject(DispatcherRegistry) readonly registry: DispatcherRegistry,
        @InjectDispatcher('payments') readonly payments: Dispatcher,
        @InjectDispatcher('audit') readonly audit: Dispatcher,
      ) {}

      @OnEvent(TOPIC_QUEUE_INITIALIZED)
      onTopicQueueInitialized({ topicQueue }: TopicQueueInitialized): void {
        heard.push(topicQueue.topic);
      }
    }

    @Module({
      imports: [
        BrokerModule.forRootAsync({ useFactory: () => ({ storage: { rootDir } }) }),
        DispatcherModule.forRoot([{ name: 'payments', host: listed.url, patterns: ['payment.*'] }]),
        DispatcherModule.forRootAsync({
          imports: [HttpModule.register({ headers: { 'x-from': 'the application' } })],
          inject: [HttpService],
          useFactory: () => [{ name: 'audit', host: made.url, patterns: ['**'] }],
          names: ['audit'],
          consumerClient: HttpServiceConsumerClient,
        }),
        OrdersModule,
      ],
      providers: [Publisher],
    })
    class AppModule {}

    const app = await start(AppModule);
    const publisher = app.get(Publisher);
    expect(await publisher.topicQueues.append(messageOf({ topic: 'order.created', content: { id: 1 }, key: 'k' }))).toEqual({
      topic: 'order.created',
      offset: 0,
    });
    expect(await publisher.topicQueues.append(messageOf({ topic: 'payment.done', content: 2 }))).toEqual({
      topic: 'payment.done',
      offset: 0,
    });
    await Promise.all([
      beans.until((all) => all.length === 1),
      listed.until((all) => all.length === 1),
      made.until((all) => all.length === 2),
    ]);
    expect(beans.received[0]).toMatchObject({ topic: 'order.created', offset: 0, attempt: 1 });
    expect(listed.received[0]).toMatchObject({ topic: 'payment.done', offset: 0, attempt: 1 });
    expect(made.received[0]?.headers['x-from']).toBe('the application');
    expect(heard.toSorted()).toEqual(['order.created', 'payment.done']);

    const { registry, payments, audit } = publisher;
    expect(registry.dispatchers.map((dispatcher) => dispatcher.name).toSorted()).toEqual(['audit', 'order-dispatcher', 'payments']);
    expect(registry.get('payments')).toBe(payments);
    expect(registry.get('audit')).toBe(audit);
    expect(registry.get('order-dispatcher')).toBe(app.get('order-dispatcher', { strict: false }));
    await until(() => payments.subscriptions[0]?.nextOffset === 1);
    expect(payments.subscriptions).toMatchObject([{ topic: 'payment.done', nextOffset: 1, counters: { delivered: 1 } }]);
  });

  it('refuses a second broker on the same directory', async () => {
    const rootDir = await newDirectory();
    @Module({ imports: [BrokerModule.forRoot({ storage: { rootDir } }), BrokerModule.forRoot({ storage: { rootDir } })] })
    class TwiceModule {}
    const starting = NestFactory.createApplicationContext(TwiceModule, { logger: false, abortOnError: false });
    await expect(starting).rejects.toMatchObject({ code: 'MMMQ_LOCKED', message: expect.stringContaining('in use by another broker') });
  });
});
