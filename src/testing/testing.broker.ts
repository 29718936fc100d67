import { setImmediate } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import type { TestingModule, TestingModuleBuilder } from '@nestjs/testing';
import { type Backoff, DEAD_LETTER_PREFIX, ErrorCode, Host, MmmqError, TopicPattern } from '../core/index.js';
import { ConsumerEndpoint } from '../consumer/index.js';
import { Dispatcher, type Subscription, WorkerState } from '../dispatcher/index.js';
import { messageOf } from '../message/index.js';
import { Producer, type ProducerTransport } from '../producer/index.js';
import { type ConsumerFault, ConsumerFaults, type FaultOptions } from './consumer-fault.js';
import { InProcessConsumerClient } from './in-process.consumer-client.js';
import { InProcessTransport } from './in-process.transport.js';
import { PublishEntrance } from './publish.entrance.js';
import { deadLetterIn, type TestingDeadLetter, type TestingMessage, testingMessageOf } from './stored-messages.js';
import type { TestingDelivery } from './testing-delivery.js';
import { TestingClock } from './testing.clock.js';
import { TestingTopicQueueService } from './testing.topic-queue.service.js';

/** A dispatcher of a {@link TestingBroker}, with the defaults of a real one. */
export interface TestingDispatcher {
  readonly name: string;
  readonly patterns: readonly string[];
  /** The longest that one attempt may take, in milliseconds of the broker's clock; 30000 by default. */
  readonly timeoutMs?: number | undefined;
  /** How often a message is sent again after NACK before it becomes a dead letter; 3 by default. */
  readonly maxResends?: number | undefined;
  /** The waits between attempts, in milliseconds; from 1000, doubled up to 60000, by default. */
  readonly backoff?: Partial<Backoff> | undefined;
  /** Several messages in one request; one by default. */
  readonly batch?: { readonly maxMessages: number; readonly maxBytes?: number | undefined } | undefined;
}

export interface TestingProduceOptions {
  readonly id?: string | undefined;
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface DrainOptions {
  /** A message that was sent so often and still has no verdict ends the drain with an error: from 1; 100 by default. */
  readonly maxAttempts?: number | undefined;
}

const EVERYTHING: readonly TestingDispatcher[] = [{ name: 'testing', patterns: ['**'] }];
/** Nobody is there: the client is in the same process. */
const HOST = Host.of('http://consumer.test');
const BROKER = 'http://broker.test';
/** One that a hanging listener cannot hold up for ever: its dispatcher stops after these steps of the clock. */
const STOP_STEPS_MS = [5_000, 1_000];

/** A dispatcher, and the application that it delivers to. */
interface Attached {
  readonly dispatcher: Dispatcher;
  readonly client: InProcessConsumerClient;
  readonly endpoint: ConsumerEndpoint;
}

/**
 * A broker for tests of applications: no file, no port, no real time. It is made of the parts of the real one, its topic queues, its dispatchers, its
 * answers to publishes, over an engine in memory; messages reach the `ConsumerModule` of the application under test by a call.
 *
 *     const broker = await TestingBroker.start();
 *     const module = await broker.compile(Test.createTestingModule({ imports: [AppModule] }));
 *     const app = await module.createNestApplication().init();
 *     await broker.produce('order.created', { id: 7 });
 *     await broker.drain();
 *     expect(broker.deliveries).toMatchObject([{ topic: 'order.created', verdict: 'ack' }]);
 *     await app.close();
 *     await broker.close();
 */
export class TestingBroker {
  /** Stands still but in {@link drain}; moved by `advance(ms)`. Time stamps and waits are its. */
  readonly clock = new TestingClock();
  private readonly topicQueues = new TestingTopicQueueService(this.clock);
  /** For a producer that is made by hand: `Producer.open({ broker: 'http://broker.test', transport: broker.transport })`. */
  readonly transport: ProducerTransport = new InProcessTransport(new PublishEntrance(this.topicQueues), (publish) =>
    this.whilePublishing(publish),
  );
  private readonly faults = new ConsumerFaults();
  private readonly attached: Attached[] = [];
  /** Dispatchers whose application is not initialised yet: they begin with what happens first behind that. */
  private notBegun: Attached[] = [];
  private readonly publishing = new Set<Promise<unknown>>();
  private delivered: TestingDelivery[] = [];

  private constructor() {}

  static async start(): Promise<TestingBroker> {
    const broker = new TestingBroker();
    await broker.topicQueues.start();
    return broker;
  }

  /** Every attempt so far, in the order in which their answers came; a batch message by message. */
  get deliveries(): readonly TestingDelivery[] {
    return this.delivered;
  }

  /** What the dispatchers have given up, topic by topic, in the order in which that came about. */
  get deadLetters(): readonly TestingDeadLetter[] {
    const topics = this.topics.filter((topic) => topic.startsWith(DEAD_LETTER_PREFIX));
    return topics.flatMap((topic) => this.payloadsOf(topic).map((payload) => deadLetterIn(topic, payload)));
  }

  /** In the order of their names. */
  get topics(): readonly string[] {
    return [...this.topicQueues.memory.logs.keys()].sort();
  }

  /** What was published to a topic, in order; nothing where there is no such topic. */
  messages(topic: string): readonly TestingMessage[] {
    return this.payloadsOf(topic).map((payload, offset) => testingMessageOf(payload, offset));
  }

  /**
   * Compiles the testing module of an application and takes the network away from it: what its `Producer` produces comes to this broker, and what
   * its `ConsumerModule` is to handle comes from here, from its initialisation on. Several applications can be compiled with one broker; each has dispatchers of its own.
   * @param dispatchers what it is sent; everything by default, by one dispatcher named `testing`
   * @throws {MmmqError} for dispatchers that are given for an application without a `ConsumerModule`
   */
  async compile(builder: TestingModuleBuilder, dispatchers?: readonly TestingDispatcher[]): Promise<TestingModule> {
    const module = await builder
      .overrideProvider(Producer)
      .useFactory({ factory: () => Producer.open({ broker: BROKER, transport: this.transport }) })
      .compile();
    const endpoint = endpointOf(module);
    if (endpoint !== undefined) this.attach(endpoint, dispatchers ?? EVERYTHING);
    else if (dispatchers?.[0] !== undefined)
      throw new MmmqError(
        ErrorCode.INVALID_SETTINGS,
        `the dispatcher ${dispatchers[0].name} has nobody to deliver to: this application has no ConsumerModule; import it, or compile with []`,
      );
    return module;
  }

  /**
   * Publishes a message, as a producer would.
   * @returns topic and offset, when it is stored; its delivery goes on
   * @throws {PublishRefusedError} what the broker refuses
   */
  async produce(topic: string, content: unknown, options: TestingProduceOptions = {}): Promise<{ topic: string; offset: number }> {
    return await this.whilePublishing(this.topicQueues.append(messageOf({ topic, content, ...options })));
  }

  /** Lets the next requests to consumers go wrong. Several faults come one after the other. */
  injectFault(fault: ConsumerFault, options: FaultOptions = {}): void {
    this.faults.add(fault, options);
  }

  /**
   * Waits until every message is delivered or a dead letter. Waits between attempts take no time: the clock moves on to the end of the shortest one as
   * soon as nothing else is left to be done. What listeners themselves wait for takes the time that it takes.
   * @throws {MmmqError} for a message that has no verdict after `maxAttempts`
   */
  async drain({ maxAttempts = 100 }: DrainOptions = {}): Promise<void> {
    await this.settle();
    const [notInitialised] = this.notBegun;
    if (notInitialised !== undefined) {
      throw new MmmqError(
        ErrorCode.INVALID_SETTINGS,
        `the application of the dispatcher ${notInitialised.dispatcher.name} does not listen: initialise it first, with app.init() or module.init()`,
      );
    }
    for (;;) {
      await this.settle();
      const waiting = this.attached.flatMap(({ dispatcher }) =>
        dispatcher.subscriptions
          .filter(({ state }) => state === WorkerState.BACKING_OFF)
          .map((subscription) => ({ name: dispatcher.name, ...subscription })),
      );
      if (waiting.length === 0) return;
      for (const subscription of waiting) this.refuseEndless(subscription, maxAttempts);
      this.clock.advanceToNext();
    }
  }

  /** Waits until nothing more comes about unless the clock moves: messages are delivered, or wait for another attempt. */
  async settle(): Promise<void> {
    this.begin();
    do {
      await Promise.allSettled([...this.publishing, ...this.attached.map(({ client }) => client.settled())]);
      await setImmediate();
    } while (this.isMoving);
  }

  /** Ends all deliveries. To be called after the applications are closed. */
  async close(): Promise<void> {
    let isStopped = false;
    const stopped = Promise.all(this.attached.map(({ dispatcher }) => dispatcher.stop())).finally(() => (isStopped = true));
    for (const ms of STOP_STEPS_MS) {
      await setImmediate();
      if (!isStopped) this.clock.advance(ms);
    }
    await stopped;
    await this.topicQueues.stop();
  }

  private attach(endpoint: ConsumerEndpoint, dispatchers: readonly TestingDispatcher[]): void {
    for (const { name, patterns, ...options } of dispatchers) {
      if (this.attached.some(({ dispatcher }) => dispatcher.name.toLowerCase() === name.toLowerCase())) {
        throw new MmmqError(
          ErrorCode.INVALID_SETTINGS,
          `this TestingBroker has a dispatcher ${name} already: give the dispatchers of each application names of their own, ` +
            `as in compile(builder, [{ name: 'mailer', patterns: ['order.**'] }])`,
        );
      }
      const client = new InProcessConsumerClient({
        endpoint,
        clock: this.clock,
        faults: this.faults,
        onDelivery: (delivery) => this.delivered.push(delivery),
      });
      const compiled = patterns.map((pattern) => TopicPattern.of(pattern));
      const dispatcher = new Dispatcher(name, HOST, compiled, { ...options, client });
      dispatcher.attach({ topicQueues: this.topicQueues, clock: this.clock, random: () => 0 });
      const attached = { dispatcher, client, endpoint };
      this.attached.push(attached);
      this.notBegun.push(attached);
    }
  }

  private begin(): void {
    for (const { dispatcher, endpoint } of this.notBegun)
      if (endpoint.isListening) this.topicQueues.onTopicQueue((event) => dispatcher.onTopicQueueInitialized(event));
    this.notBegun = this.notBegun.filter(({ endpoint }) => !endpoint.isListening);
  }

  private async whilePublishing<T>(publish: Promise<T>): Promise<T> {
    this.begin();
    this.publishing.add(publish);
    try {
      return await publish;
    } finally {
      this.publishing.delete(publish);
    }
  }

  private get isMoving(): boolean {
    if (this.publishing.size > 0) return true;
    return this.attached.some(
      ({ dispatcher, client }) => !client.isIdle || dispatcher.subscriptions.some(({ state }) => state === WorkerState.DRAINING),
    );
  }

  private refuseEndless({ name, topic, nextOffset, lastProblem }: Subscription & { readonly name: string }, maxAttempts: number): void {
    const last = this.delivered.findLast((each) => each.dispatcher === name && each.topic === topic && each.offset === nextOffset);
    if (last === undefined || last.attempt < maxAttempts) return;
    throw new MmmqError(
      ErrorCode.INVALID_VALUE,
      `dispatcher ${name}, topic ${topic}, offset ${nextOffset}: sent ${last.attempt} times and still without a verdict (${lastProblem?.reason})`,
    );
  }

  private payloadsOf(topic: string): readonly Buffer[] {
    return this.topicQueues.memory.logs.get(topic)?.payloads ?? [];
  }
}

/** The consumer of an application, where it has one. */
function endpointOf(module: INestApplicationContext): ConsumerEndpoint | undefined {
  try {
    return module.get(ConsumerEndpoint, { strict: false });
  } catch {
    return undefined;
  }
}
