import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type DynamicModule,
  type INestApplicationContext,
  Inject,
  Injectable,
  type LoggerService,
  Module,
  type OnApplicationBootstrap,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { EventEmitter2, EventEmitterModule, EventEmitterReadinessWatcher, OnEvent } from '@nestjs/event-emitter';
import { Test } from '@nestjs/testing';
import { Gate } from '../../test/support/gate.js';
import { MemoryEngine } from '../../test/support/memory-engine.js';
import { until } from '../../test/support/until.js';
import { ENGINE, ErrorCode, MmmqError } from '../core/index.js';
import { deadLetterOf, type Message, messageOf } from '../message/index.js';
import {
  TOPIC_QUEUE_INITIALIZED,
  type TopicQueueInitialized,
  TopicQueueModule,
  TopicQueueService,
  TopicQueueServiceState,
} from './index.js';

const message = (topic: string, content: unknown = 1): Message => messageOf({ topic, content });

@Injectable()
class Listener {
  readonly topics: string[] = [];

  @OnEvent(TOPIC_QUEUE_INITIALIZED)
  onTopicQueue({ topicQueue }: TopicQueueInitialized): void {
    this.topics.push(topicQueue.topic);
  }
}

@Module({})
class MemoryStorageModule {}

const SILENT: LoggerService = { log: () => undefined, error: () => undefined, warn: () => undefined };

let app: INestApplicationContext | undefined;

async function applicationOver(engine: MemoryEngine, imports: DynamicModule[] = [], providers: Type[] = []) {
  const storage: DynamicModule = { module: MemoryStorageModule, providers: [{ provide: ENGINE, useValue: engine }], exports: [ENGINE] };
  const module = await Test.createTestingModule({
    imports: [TopicQueueModule.register(storage), ...imports],
    providers: [Listener, ...providers],
  })
    .setLogger(SILENT)
    .compile();
  app = module;
  const service = module.get(TopicQueueService);
  return { module, service, listener: module.get(Listener) };
}

afterEach(async () => {
  await app?.close();
  app = undefined;
});

describe('TopicQueueService', () => {
  it('serves the topics that it finds, and says so once for each when the listeners are there', async () => {
    const engine = new MemoryEngine();
    engine.withTopic('payment.received');
    engine.withTopic('order.created');
    const { module, service, listener } = await applicationOver(engine);
    expect(service.state).toBe(TopicQueueServiceState.STARTING);
    await module.init();

    expect(service.state).toBe(TopicQueueServiceState.SERVING);
    expect(service.topicQueues().map(({ topic }) => topic)).toEqual(['order.created', 'payment.received']);
    expect(listener.topics).toEqual(['order.created', 'payment.received']);
  });

  it('makes a topic queue for the first message of a topic, and says so once', async () => {
    const { module, service, listener } = await applicationOver(new MemoryEngine());
    await module.init();

    await expect(service.append(message('order.created'))).resolves.toEqual({ topic: 'order.created', offset: 0 });
    await expect(service.append(message('order.created'))).resolves.toEqual({ topic: 'order.created', offset: 1 });
    expect(listener.topics).toEqual(['order.created']);
    expect(service.topicQueue('order.created')?.count).toBe(2);
    expect(service.topicQueue('order.paid')).toBeUndefined();
  });

  it('says once of topics that are made between its start and the time when the listeners are there', async () => {
    @Injectable()
    class EarlyPublisher implements OnModuleInit, OnApplicationBootstrap {
      constructor(@Inject(TopicQueueService) private readonly topicQueues: TopicQueueService) {}

      async onModuleInit(): Promise<void> {
        await this.topicQueues.append(message('order.created'));
      }

      async onApplicationBootstrap(): Promise<void> {
        await this.topicQueues.append(message('order.paid'));
      }
    }
    const { module, listener } = await applicationOver(new MemoryEngine(), [], [EarlyPublisher]);
    await module.init();

    expect(listener.topics).toEqual(['order.created', 'order.paid']);
  });

  it('says so once also where the application has an event emitter of its own', async () => {
    const engine = new MemoryEngine();
    engine.withTopic('order.created');
    const { module, service, listener } = await applicationOver(engine, [EventEmitterModule.forRoot()]);
    await module.init();
    await service.append(message('order.paid'));

    expect(listener.topics).toEqual(['order.created', 'order.paid']);
  });

  it('waits for listeners that are attached after its own start, without holding it up', async () => {
    const engine = new MemoryEngine();
    engine.withTopic('order.created');
    const emitter = new EventEmitter2();
    const listeners = new EventEmitterReadinessWatcher();
    const service = new TopicQueueService(engine, emitter, listeners);
    await service.onModuleInit();
    await service.onApplicationBootstrap();
    await service.append(message('order.paid'));
    const topics: string[] = [];
    emitter.on(TOPIC_QUEUE_INITIALIZED, ({ topicQueue }: TopicQueueInitialized) => topics.push(topicQueue.topic));
    listeners.setReady();
    await listeners.waitUntilReady();
    await service.append(message('order.sent'));

    expect(topics).toEqual(['order.created', 'order.paid', 'order.sent']);
  });

  it('refuses the start when the listeners cannot be attached, as nothing would be delivered', async () => {
    const listeners = new EventEmitterReadinessWatcher();
    const service = new TopicQueueService(new MemoryEngine(), new EventEmitter2(), listeners);
    await service.onModuleInit();
    listeners.setErrored(new Error('no listeners'));

    await expect(service.onApplicationBootstrap()).rejects.toThrow('no listeners');
  });

  it('lets concurrent first messages of a topic share one creation', async () => {
    const engine = new MemoryEngine();
    const gate = new Gate();
    let creations = 0;
    engine.faults.create = async () => {
      creations += 1;
      await gate.opened;
    };
    const { module, service, listener } = await applicationOver(engine);
    await module.init();
    const appends = Array.from({ length: 10 }, (_, index) => service.append(message('order.created', index)));
    gate.open();

    expect((await Promise.all(appends)).map(({ offset }) => offset)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(creations).toBe(1);
    expect(listener.topics).toEqual(['order.created']);
  });

  it('fails all who wait for a creation that fails, and tries again with the next message', async () => {
    const engine = new MemoryEngine();
    const failure = new MmmqError(ErrorCode.DISK_FULL, 'no room');
    engine.faults.create = () => Promise.reject(failure);
    const { module, service, listener } = await applicationOver(engine);
    await module.init();

    const outcomes = await Promise.allSettled([service.append(message('order.created')), service.append(message('order.created'))]);
    expect(outcomes).toEqual([1, 2].map(() => ({ status: 'rejected', reason: failure })));
    expect(listener.topics).toEqual([]);
    delete engine.faults.create;
    await expect(service.append(message('Order.created'))).resolves.toEqual({ topic: 'Order.created', offset: 0 });
  });

  it('refuses a topic that differs only in case from one that is there or just being made', async () => {
    const engine = new MemoryEngine();
    engine.withTopic('order.created');
    const gate = new Gate();
    engine.faults.create = () => gate.opened;
    const { module, service } = await applicationOver(engine);
    await module.init();
    const made = service.append(message('order.paid'));

    await expect(service.append(message('Order.Created'))).rejects.toMatchObject({ status: 409, field: 'topic' });
    await expect(service.append(message('order.PAID'))).rejects.toMatchObject({ status: 409, field: 'topic' });
    gate.open();
    await expect(made).resolves.toEqual({ topic: 'order.paid', offset: 0 });
  });

  it('serves two topics that differ only in case when both are there already', async () => {
    const engine = new MemoryEngine();
    engine.withTopic('order');
    engine.withTopic('Order');
    const { module, service } = await applicationOver(engine);
    await module.init();

    await expect(service.append(message('order'))).resolves.toEqual({ topic: 'order', offset: 0 });
    await expect(service.append(message('Order'))).resolves.toEqual({ topic: 'Order', offset: 0 });
    await expect(service.append(message('ORDER'))).rejects.toMatchObject({ status: 409 });
  });

  it('does not let a listener that fails spoil a publish or the news for others', async () => {
    @Injectable()
    class FailingListener {
      @OnEvent(TOPIC_QUEUE_INITIALIZED, { suppressErrors: false, prependListener: true })
      onTopicQueue(): Promise<void> {
        return Promise.reject(new Error('a listener failed'));
      }
    }
    const { module, service, listener } = await applicationOver(new MemoryEngine(), [], [FailingListener]);
    await module.init();
    module.get(EventEmitter2).prependListener(TOPIC_QUEUE_INITIALIZED, () => {
      throw new Error('this one failed at once');
    });

    await expect(service.append(message('order.created'))).resolves.toEqual({ topic: 'order.created', offset: 0 });
    expect(listener.topics).toEqual(['order.created']);
  });

  it('refuses the start when the log cannot be opened', async () => {
    const engine = new MemoryEngine();
    const failure = new MmmqError(ErrorCode.CORRUPT, 'order.created/0000000000000000000.mmm is too short');
    engine.faults.open = () => Promise.reject(failure);
    const { module } = await applicationOver(engine);

    await expect(module.init()).rejects.toBe(failure);
  });

  it('takes nothing before the start', async () => {
    const { service } = await applicationOver(new MemoryEngine());

    await expect(service.append(message('order.created'))).rejects.toMatchObject({ code: ErrorCode.CLOSED });
  });

  it('answers what is under way when it ends, creations too, and closes the log after that', async () => {
    const engine = new MemoryEngine();
    const creation = new Gate();
    const append = new Gate();
    engine.faults.create = () => creation.opened;
    engine.faults.append = () => append.opened;
    engine.withTopic('order.created');
    const { module, service } = await applicationOver(engine);
    await module.init();
    const underWay = [service.append(message('order.created')), service.append(message('order.paid'))];
    const closed = module.close();
    await until(() => service.state === TopicQueueServiceState.CLOSING);

    await expect(service.append(message('order.created'))).rejects.toMatchObject({ code: ErrorCode.CLOSED });
    append.open();
    await underWay[0];
    await setImmediate();
    expect([engine.isClosed, service.isClosed]).toEqual([false, false]);
    creation.open();
    await expect(Promise.all(underWay)).resolves.toEqual([
      { topic: 'order.created', offset: 0 },
      { topic: 'order.paid', offset: 0 },
    ]);
    await closed;
    expect([engine.isClosed, service.isClosed]).toEqual([true, true]);
  });

  it('waits for the appends to all topic queues when it ends', async () => {
    const engine = new MemoryEngine();
    const append = new Gate();
    engine.faults.append = () => append.opened;
    engine.withTopic('order.created');
    const { module, service } = await applicationOver(engine);
    await module.init();
    const underWay = service.append(message('order.created'));
    const closed = module.close();
    await until(() => service.state === TopicQueueServiceState.CLOSING);

    await setImmediate();
    expect(engine.isClosed).toBe(false);
    append.open();
    await expect(underWay).resolves.toEqual({ topic: 'order.created', offset: 0 });
    await closed;
    expect(engine.isClosed).toBe(true);
  });

  it('is not closed when closing the log fails, though the application ends as always', async () => {
    const engine = new MemoryEngine();
    engine.faults.close = () => Promise.reject(new MmmqError(ErrorCode.IO, 'close failed: EIO'));
    const { module, service } = await applicationOver(engine);
    await module.init();
    await module.close();

    expect(service.isClosed).toBe(false);
    await expect(service.append(message('order.created'))).rejects.toMatchObject({ code: ErrorCode.CLOSED });
  });

  it('makes eight topics at once, the others in the order of their arrival, and lets messages of other topics pass', async () => {
    const engine = new MemoryEngine();
    engine.withTopic('order.created');
    const gates = new Map<string, Gate>();
    engine.faults.create = async (topic) => {
      const gate = new Gate();
      gates.set(topic, gate);
      await gate.opened;
      if (topic === 'new.1') throw new MmmqError(ErrorCode.DISK_FULL, 'no room');
    };
    const { module, service } = await applicationOver(engine);
    await module.init();
    const topics = Array.from({ length: 12 }, (_, index) => `new.${index}`);
    const appends = Promise.allSettled(topics.map((topic) => service.append(message(topic))));
    await setImmediate();
    expect([...gates.keys()]).toEqual(topics.slice(0, 8));

    await expect(service.append(message('order.created'))).resolves.toEqual({ topic: 'order.created', offset: 0 });
    gates.get('new.5')?.open();
    await setImmediate();
    expect([...gates.keys()]).toEqual(topics.slice(0, 9));
    gates.get('new.1')?.open();
    await setImmediate();
    expect([...gates.keys()]).toEqual(topics.slice(0, 10));
    for (const topic of topics) {
      gates.get(topic)?.open();
      await setImmediate();
    }
    expect((await appends).map(({ status }) => status === 'fulfilled')).toEqual(topics.map((topic) => topic !== 'new.1'));
  });

  it('makes the topic of dead letters next, however many others wait', async () => {
    const engine = new MemoryEngine();
    const begun: string[] = [];
    const gates: Gate[] = [];
    engine.faults.create = async (topic) => {
      begun.push(topic);
      const gate = new Gate();
      gates.push(gate);
      await gate.opened;
    };
    const { module, service } = await applicationOver(engine);
    await module.init();
    const topics = Array.from({ length: 20 }, (_, index) => `new.${index}`);
    const deadLetters = ['orders', 'audit'].map((dispatcher) =>
      deadLetterOf({
        dispatcher,
        topic: 'order.created',
        offset: 0,
        attempts: 1,
        reason: 'NACK',
        answer: undefined,
        message: Buffer.from('{}'),
      }),
    );
    const appends = [...topics.map((topic) => message(topic)), ...deadLetters].map((each) => service.append(each));
    await setImmediate();
    expect(begun).toEqual(topics.slice(0, 8));
    for (let made = 0; made < appends.length; made += 1) {
      gates[made]?.open();
      await setImmediate();
    }
    await Promise.all(appends);
    expect(begun).toEqual([...topics.slice(0, 8), 'dlq.orders', 'dlq.audit', ...topics.slice(8)]);
  });

  it('refuses what still waits for its topic to be made when it ends, and finishes the others', async () => {
    const engine = new MemoryEngine();
    const gate = new Gate();
    engine.faults.create = () => gate.opened;
    const { module, service } = await applicationOver(engine);
    await module.init();
    const appends = Promise.allSettled(Array.from({ length: 10 }, (_, index) => service.append(message(`new.${index}`))));
    const closed = module.close();
    await until(() => service.state === TopicQueueServiceState.CLOSING);
    gate.open();

    const outcomes = await appends;
    expect(outcomes.slice(0, 8).every(({ status }) => status === 'fulfilled')).toBe(true);
    expect(outcomes.slice(8)).toMatchObject([1, 2].map(() => ({ status: 'rejected', reason: { code: ErrorCode.CLOSED } })));
    await closed;
    expect(service.isClosed).toBe(true);
  });
});
