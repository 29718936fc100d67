import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Global, Inject, Injectable, Logger, Module, type DynamicModule, type ModuleMetadata } from '@nestjs/common';
import { HttpModule } from '@nestjs/axios';
import { Test, type TestingModule } from '@nestjs/testing';
import { MemoryEngine } from '../../test/support/memory-engine.js';
import { TestConsumer } from '../../test/support/test-consumer.js';
import { until } from '../../test/support/until.js';
import { Host, TopicPattern } from '../core/index.js';
import { messageOf } from '../message/index.js';
import { ENGINE, TopicQueueModule, TopicQueueService } from '../topic-queue/index.js';
import {
  HttpServiceConsumerClient,
  UndiciConsumerClient,
  type ConsumerClient,
  type ConsumerReply,
  type ConsumerRequest,
} from './consumer-client/index.js';
import { DispatcherCoreModule } from './dispatcher-core.module.js';
import { getDispatcherToken, InjectDispatcher } from './dispatcher.decorators.js';
import { DispatcherModule } from './dispatcher.module.js';
import { DispatcherRegistry } from './dispatcher.registry.js';
import { Dispatcher } from './dispatcher.js';

const PATTERNS = ['order.**'];

@Module({})
class Storage {}

const publish = (made: TestingModule, topic: string): Promise<{ offset: number }> =>
  made.get(TopicQueueService, { strict: false }).append(messageOf({ topic, content: 1 }));
const registry = (made: TestingModule): DispatcherRegistry => made.get(DispatcherRegistry, { strict: false });
const names = (made: TestingModule): string[] =>
  registry(made)
    .dispatchers.map(({ name }) => name)
    .sort();

describe('the dispatchers of an application', () => {
  let consumer: TestConsumer;
  let engine: MemoryEngine;
  let app: TestingModule | undefined;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    consumer = await TestConsumer.start();
    engine = new MemoryEngine();
  });

  afterEach(async () => {
    await app?.close();
    app = undefined;
    await consumer.stop();
    jest.restoreAllMocks();
  });

  /** What `BrokerModule` brings along, on an engine in memory. */
  function broker(): DynamicModule[] {
    const storage = { module: Storage, providers: [{ provide: ENGINE, useValue: engine }], exports: [ENGINE] };
    const topicQueues = TopicQueueModule.register(storage);
    return [topicQueues, DispatcherCoreModule.register(topicQueues)];
  }

  async function start(metadata: ModuleMetadata, withBroker = true): Promise<TestingModule> {
    const imports = [...(withBroker ? broker() : []), ...(metadata.imports ?? [])];
    const made = await Test.createTestingModule({ ...metadata, imports }).compile();
    await made.init();
    app = made;
    return made;
  }

  const url = (): string => String(consumer.host);
  const dispatcher = (name: string, patterns = PATTERNS): Dispatcher =>
    new Dispatcher(
      name,
      consumer.host,
      patterns.map((pattern) => TopicPattern.of(pattern)),
    );
  const moduleOf = (name: string): DynamicModule => DispatcherModule.forRoot([{ name, host: url(), patterns: PATTERNS }]);
  const deliveries = (): string[] =>
    consumer.received.map(({ headers }) => `${headers['mmmq-dispatcher']} ${headers['mmmq-topic']} ${headers['mmmq-offset']}`).sort();

  describe('declared as providers', () => {
    it('are found in any module, as useValue and as useFactory, and run for topics old and new', async () => {
      engine.withTopic('order.old', [Buffer.from('{"topic":"order.old","content":1}')]);

      @Module({ providers: [{ provide: 'b', useFactory: () => dispatcher('factory') }] })
      class Deep {}
      @Module({ imports: [Deep] })
      class Feature {}

      const made = await start({ imports: [Feature], providers: [{ provide: 'a', useValue: dispatcher('value') }] });
      await publish(made, 'order.new');
      await until(() => consumer.received.length === 4);
      expect(deliveries()).toEqual(['factory order.new 0', 'factory order.old 0', 'value order.new 0', 'value order.old 0']);
      expect(names(made)).toEqual(['factory', 'value']);
      expect(registry(made).get('value')).toBe(made.get('a'));
      expect(registry(made).get('VALUE')).toBeUndefined();
    });

    it('may be classes of their own', async () => {
      @Injectable()
      class Orders extends Dispatcher {
        constructor() {
          super('orders', Host.of(url()), [TopicPattern.of('order.**')]);
        }
      }
      const made = await start({ providers: [Orders] });
      await publish(made, 'order.new');
      await until(() => consumer.received.length === 1);
      expect(deliveries()).toEqual(['orders order.new 0']);
    });

    it('deliver once, under however many tokens', async () => {
      const one = dispatcher('one');
      const providers = [
        { provide: 'a', useValue: one },
        { provide: 'b', useValue: one },
        { provide: 'c', useExisting: 'a' },
      ];
      const made = await start({ providers });
      await publish(made, 'order.new');
      await publish(made, 'order.new');
      await until(() => registry(made).get('one')?.subscriptions[0]?.nextOffset === 2);
      expect(deliveries()).toEqual(['one order.new 0', 'one order.new 1']);
    });

    it('may stand beside providers that have no instance', async () => {
      const providers = [
        { provide: 'null', useValue: null },
        { provide: 'nothing', useFactory: () => undefined },
        { provide: 'a', useValue: dispatcher('a') },
      ];
      expect(names(await start({ providers }))).toEqual(['a']);
    });

    it('run again in the next application', async () => {
      const providers = [{ provide: 'a', useValue: dispatcher('a') }];
      await (await start({ providers })).close();
      engine = engine.restarted();
      const made = await start({ providers });
      await publish(made, 'order.new');
      await until(() => consumer.received.length === 1);
    });

    it('refuse the start when two have one name, also in another case', async () => {
      const providers = [
        { provide: 'a', useValue: dispatcher('Orders') },
        { provide: 'b', useValue: dispatcher('orders') },
      ];
      await expect(start({ providers })).rejects.toThrow('dispatchers "Orders" and "orders" have one name when case is ignored');
    });

    it('refuse the start when one was renamed in case alone, as its dead letters would have no topic', async () => {
      engine.withTopic('dlq.Orders');
      const providers = [{ provide: 'a', useValue: dispatcher('orders') }];
      await expect(start({ providers })).rejects.toThrow(
        'dispatcher "orders" differs only in case from "Orders", whose dead letters are in the topic dlq.Orders: ' +
          'use that name, or one that differs in more than case',
      );
    });

    it('start beside dead letters of their own name, of another name, and of a name in another case when their own are there too', async () => {
      for (const topic of ['dlq.Orders', 'dlq.orders', 'dlq.News', 'dlq.order', 'news']) engine.withTopic(topic);
      const providers = [
        { provide: 'a', useValue: dispatcher('orders') },
        { provide: 'b', useValue: dispatcher('News') },
      ];
      expect(names(await start({ providers }))).toEqual(['News', 'orders']);
    });

    it('refuse the start of an application without a broker', async () => {
      const providers = [{ provide: 'a', useValue: dispatcher('a') }];
      await expect(start({ providers }, false)).rejects.toThrow(
        'dispatcher "a" has no broker to take messages from: import BrokerModule.forRoot()',
      );
    });

    it('refuse the start of an application with two brokers', async () => {
      const providers = [{ provide: 'a', useValue: dispatcher('a') }];
      await expect(start({ imports: broker(), providers })).rejects.toThrow('dispatcher "a" is already run by a broker');
    });

    it('are stopped before the log is closed', async () => {
      const made = await start({ providers: [{ provide: 'a', useValue: dispatcher('a') }] });
      await publish(made, 'order.new');
      const stop = jest.spyOn(Dispatcher.prototype, 'stop');
      const wasOpen: boolean[] = [];
      stop.mockImplementationOnce(async function (this: Dispatcher) {
        wasOpen.push(!engine.isClosed);
        await this.stop();
      });
      await made.close();
      app = undefined;
      expect(wasOpen).toEqual([true]);
      expect(engine.isClosed).toBe(true);
    });
  });

  describe('of DispatcherModule.forRoot', () => {
    it('run, and are injected by name', async () => {
      @Injectable()
      class Panel {
        constructor(@InjectDispatcher('orders') readonly orders: Dispatcher) {}
      }
      const made = await start({
        imports: [
          DispatcherModule.forRoot([
            { name: 'orders', host: url(), patterns: PATTERNS, maxResends: 1 },
            { name: 'news', host: url(), patterns: ['news.**'] },
          ]),
        ],
        providers: [Panel],
      });
      await publish(made, 'order.new');
      await publish(made, 'news');
      await until(() => consumer.received.length === 2);
      expect(deliveries()).toEqual(['news news 0', 'orders order.new 0']);
      expect(made.get(Panel).orders).toBe(registry(made).get('orders'));
      expect(made.get(Panel).orders.maxResends).toBe(1);
    });

    it('may be imported twice with different names, and not with one', async () => {
      expect(names(await start({ imports: [moduleOf('a'), moduleOf('b')] }))).toEqual(['a', 'b']);
      await app?.close();
      app = undefined;
      engine = new MemoryEngine();
      await expect(start({ imports: [moduleOf('a'), moduleOf('A')] })).rejects.toThrow('dispatchers "a" and "A" have one name');
    });

    it('may be none', async () => {
      expect(names(await start({ imports: [DispatcherModule.forRoot()] }))).toEqual([]);
    });

    it('are checked when they are declared', () => {
      expect(() => DispatcherModule.forRoot([{ name: 'a', host: 'localhost', patterns: PATTERNS }])).toThrow(/DispatcherModule\.forRoot/);
    });

    it('refuse the start without a broker', async () => {
      await expect(start({ imports: [moduleOf('a')] }, false)).rejects.toThrow('import BrokerModule.forRoot()');
    });

    it('deliver in batches where they are told so', async () => {
      const definitions = [{ name: 'a', host: url(), patterns: PATTERNS, batch: { maxMessages: 7 } }];
      const made = await start({ imports: [DispatcherModule.forRoot(definitions)] });
      expect(registry(made).get('a')?.batch).toEqual({ maxMessages: 7, maxBytes: 1_048_576 });
      await publish(made, 'order.new');
      await until(() => consumer.received.length === 1);
      expect(consumer.received[0]?.url).toBe('/messages/batch');
    });

    it('speak through the HttpService of the application where they are told so', async () => {
      const post = jest.spyOn(HttpServiceConsumerClient.prototype, 'post');
      const definitions = [{ name: 'a', host: url(), patterns: PATTERNS }];
      const options = { imports: [HttpModule], consumerClient: HttpServiceConsumerClient };
      const made = await start({ imports: [DispatcherModule.forRoot(definitions, options)] });
      await publish(made, 'order.new');
      await until(() => consumer.received.length === 1);
      expect(post).toHaveBeenCalledTimes(1);
    });

    it('speak through the client class that is given, made by Nest and closed at the end', async () => {
      @Injectable()
      class Tagging implements ConsumerClient {
        static closed = 0;
        private readonly inner = new UndiciConsumerClient();
        constructor(@Inject('TAG') private readonly tag: string) {}
        post(request: ConsumerRequest): Promise<ConsumerReply> {
          return this.inner.post({ ...request, headers: { ...request.headers, 'x-tag': this.tag } });
        }
        async close(): Promise<void> {
          Tagging.closed += 1;
          await this.inner.close();
        }
      }
      @Global()
      @Module({ providers: [{ provide: 'TAG', useValue: 'blue' }], exports: ['TAG'] })
      class Tags {}

      const definitions = [
        { name: 'a', host: url(), patterns: PATTERNS },
        { name: 'b', host: url(), patterns: PATTERNS },
      ];
      const made = await start({ imports: [DispatcherModule.forRoot(definitions, { imports: [Tags], consumerClient: Tagging })] });
      await publish(made, 'order.new');
      await until(() => consumer.received.length === 2);
      expect(consumer.received.map(({ headers }) => headers['x-tag'])).toEqual(['blue', 'blue']);
      await made.close();
      app = undefined;
      expect(Tagging.closed).toBe(1);
    });
  });

  describe('of DispatcherModule.forRootAsync', () => {
    @Module({ providers: [{ provide: 'NAME', useValue: 'orders' }], exports: ['NAME'] })
    class Configuration {}

    const async = (named?: readonly string[]): DynamicModule =>
      DispatcherModule.forRootAsync({
        imports: [Configuration],
        inject: ['NAME'],
        useFactory: async (name: string) => [
          { name, host: url(), patterns: PATTERNS },
          { name: 'all', host: url(), patterns: ['**'] },
        ],
        ...(named && { names: named }),
      });

    it('run as the factory gives them', async () => {
      engine.withTopic('order.old', [Buffer.from('{"topic":"order.old","content":1}')]);
      const made = await start({ imports: [async()] });
      await publish(made, 'order.new');
      await until(() => consumer.received.length === 4);
      expect(deliveries()).toEqual(['all order.new 0', 'all order.old 0', 'orders order.new 0', 'orders order.old 0']);
      expect(names(made)).toEqual(['all', 'orders']);
    });

    it('are injected by the names that are declared, and still deliver once', async () => {
      const made = await start({
        imports: [async(['orders'])],
        providers: [{ provide: 'it', inject: [getDispatcherToken('orders')], useFactory: (orders: Dispatcher) => orders }],
      });
      expect(made.get('it')).toBe(registry(made).get('orders'));
      await publish(made, 'order.new');
      await until(() => registry(made).dispatchers.every(({ subscriptions }) => subscriptions[0]?.nextOffset === 1));
      expect(deliveries()).toEqual(['all order.new 0', 'orders order.new 0']);
    });

    it('refuse a declared name that the factory does not give', async () => {
      await expect(start({ imports: [async(['billing'])] })).rejects.toThrow(
        'names has "billing", but useFactory gave no dispatcher of that name (it gave: "orders", "all")',
      );
    });

    it('refuse the start without a broker', async () => {
      await expect(start({ imports: [async()] }, false)).rejects.toThrow('import BrokerModule.forRoot()');
    });

    it('are checked by the rules of the settings', async () => {
      const imports = [DispatcherModule.forRootAsync({ useFactory: () => [{ name: 'a', host: url(), patterns: [] }] })];
      await expect(start({ imports })).rejects.toThrow(/DispatcherModule\.forRootAsync/);
    });
  });
});
