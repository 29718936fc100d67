import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { ErrorCode, Host, MmmqError, TopicPattern, Turns, type Backoff } from '../core/index.js';
import { dispatcherSettings, type DispatcherBatch, type DispatcherDefinition } from '../settings/index.js';
import { TOPIC_QUEUE_INITIALIZED, TopicQueueInitialized } from '../topic-queue/index.js';
import { BatchRoom } from './batch-room.js';
import { UndiciConsumerClient, type ConsumerClient } from './consumer-client/index.js';
import { DispatcherWorker, type Subscription, type WorkerBounds } from './dispatcher-worker.js';
import type { DispatcherRuntime } from './dispatcher.runtime.js';

/**
 * So many attempts of one dispatcher are under way at a time, each with a connection of its own; other topics wait for their turn. Otherwise
 * a consumer that hangs would hold a connection for each of thousands of topics, and publishes would find no handle left for their files.
 */
export const MAX_ATTEMPTS_AT_ONCE = 128;

/** What a `Dispatcher` may be told beside its name, host and patterns. Each has its default. */
export interface DispatcherOptions {
  /** The longest that one attempt may take, from connect to the last byte of the answer, in milliseconds; 30000 by default. */
  readonly timeoutMs?: number | undefined;
  /** How often a message is sent again after NACK before it becomes a dead letter; 3 by default. */
  readonly maxResends?: number | undefined;
  /** The waits between attempts, in milliseconds; from 1000, doubled up to 60000, by default. */
  readonly backoff?: Partial<Backoff> | undefined;
  /**
   * Delivers several messages of a topic in one request, `maxMessages` at most, in a body of `maxBytes` at most (1 MiB by default); it takes
   * what is there and waits for no more. One message in a request by default.
   */
  readonly batch?: DispatcherDefinition['batch'];
  /** How it speaks to its consumer; a pool of its own by default. A client that is given is closed by whoever made it. */
  readonly client?: ConsumerClient | undefined;
}

/**
 * Delivers every message of the topics that match its patterns to one consumer, in order per topic and at least once.
 *
 * Declare it as a provider of any module of an application that imports `BrokerModule`, and it runs:
 *
 *     { provide: 'orders', useValue: new Dispatcher('order-dispatcher', Host.of('http://localhost:8081'), [TopicPattern.of('order.**')]) }
 *
 * Its name is the name of its checkpoints: a name never seen before gets every topic from offset 0, a name changed does so again.
 * It runs from the start of its application to the end; the same object may then run in another one.
 */
export class Dispatcher implements OnApplicationBootstrap {
  readonly name: string;
  readonly host: Host;
  readonly patterns: readonly TopicPattern[];
  readonly timeoutMs: number;
  readonly maxResends: number;
  readonly backoff: Backoff;
  /** Undefined where each message is delivered on its own. */
  readonly batch: DispatcherBatch | undefined;

  private bounds = newBounds();
  private readonly workers = new Map<string, DispatcherWorker>();
  private readonly givenClient: ConsumerClient | undefined;
  private ownClient: ConsumerClient | undefined;
  private runtime: DispatcherRuntime | undefined;

  /**
   * @param name spelled as a topic, at most 100 characters; no other dispatcher of the application has it, whatever the case
   * @param host where the consumer listens; messages go to `POST {host}/messages`, batches to `POST {host}/messages/batch`
   * @param patterns at least one; a topic that several of them match is delivered once
   * @throws {MmmqError} when a value breaks its rule
   */
  constructor(name: string, host: Host, patterns: readonly TopicPattern[], options: DispatcherOptions = {}) {
    const { timeoutMs, maxResends, backoff, batch, client } = options;
    const definition = { name, host: String(host), patterns: patterns.map(String), timeoutMs, maxResends, backoff, batch };
    const [settings] = dispatcherSettings([definition], `new Dispatcher(${JSON.stringify(name)})`);
    if (settings === undefined) throw new Error('one definition makes one dispatcher');
    this.name = settings.name;
    this.host = Host.of(settings.host);
    this.patterns = settings.patterns.map((pattern) => TopicPattern.of(pattern));
    this.timeoutMs = settings.timeoutMs;
    this.maxResends = settings.maxResends;
    this.backoff = settings.backoff;
    this.batch = settings.batch;
    this.givenClient = client;
  }

  /** The topics that it delivers, and how far it is in each. */
  get subscriptions(): readonly Subscription[] {
    return [...this.workers.values()].map((worker) => worker.subscription);
  }

  /**
   * Called by the registry, before the first topic queue is announced.
   * @internal
   */
  attach(runtime: DispatcherRuntime): void {
    if (this.runtime !== undefined) {
      throw new MmmqError(
        ErrorCode.INVALID_SETTINGS,
        `dispatcher "${this.name}" is already run by a broker: import BrokerModule once, and give each application a Dispatcher of its own`,
      );
    }
    this.runtime = runtime;
  }

  /** A dispatcher that nobody runs would be silent for ever; it stops the start instead. */
  onApplicationBootstrap(): void {
    if (this.runtime !== undefined) return;
    throw new MmmqError(
      ErrorCode.INVALID_SETTINGS,
      `dispatcher "${this.name}" has no broker to take messages from: import BrokerModule.forRoot() in this application`,
    );
  }

  /** Subscribes the topic when a pattern matches it. One subscription per topic, however often the topic is announced. */
  @OnEvent(TOPIC_QUEUE_INITIALIZED)
  onTopicQueueInitialized({ topicQueue }: TopicQueueInitialized): void {
    const { topic } = topicQueue;
    if (this.runtime === undefined || this.workers.has(topic)) return;
    if (!this.patterns.some((pattern) => pattern.matches(topic))) return;
    const worker = new DispatcherWorker(this, topicQueue, this.client, this.runtime, this.bounds);
    this.workers.set(topic, worker);
    worker.start();
  }

  /**
   * Called by the registry. Ends all deliveries, in 6 s at most; what is not committed comes again after the next start.
   * @internal
   */
  async stop(): Promise<void> {
    this.runtime = undefined;
    await Promise.all([...this.workers.values()].map((worker) => worker.stop()));
    this.workers.clear();
    // One that did not stop in time may keep its turn, and its room, for ever.
    this.bounds = newBounds();
    const client = this.ownClient;
    this.ownClient = undefined;
    try {
      await client?.close();
    } catch (error) {
      new Logger(Dispatcher.name).warn(`dispatcher ${this.name}: its connections did not close cleanly (${String(error)})`);
    }
  }

  /** A client of its own for each dispatcher, so that a consumer that holds its connections holds nobody else's. */
  private get client(): ConsumerClient {
    return this.givenClient ?? (this.ownClient ??= new UndiciConsumerClient());
  }
}

function newBounds(): WorkerBounds {
  return { turns: new Turns(MAX_ATTEMPTS_AT_ONCE), batchRoom: new BatchRoom() };
}
