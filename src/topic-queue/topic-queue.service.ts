import {
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import {
  type Clock,
  type Engine,
  ENGINE,
  type EngineProblem,
  ErrorCode,
  isDeadLetterTopic,
  MmmqError,
  systemClock,
  type TopicLog,
  Turns,
} from '../core/index.js';
import { type Message, PublishRefusedError } from '../message/index.js';
import { IdempotencyMemory } from './idempotency-memory.js';
import { TopicQueueServiceState } from './topic-queue-service.state.js';
import { TOPIC_QUEUE_INITIALIZED, TopicQueueInitialized } from './topic-queue.events.js';
import { TopicQueue } from './topic-queue.js';

/** So many topics may be made at once. Each takes several syncs of directories, and those are taken from everybody who appends. */
const MAX_CREATIONS_AT_ONCE = 8;

/**
 * All topic queues of the broker: those found in the log at the start, and those that a first message made since.
 *
 * Publish from inside the process with it: `await topicQueueService.append(messageOf({ topic, content }))`.
 */
@Injectable()
export class TopicQueueService implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  private readonly logger = new Logger(TopicQueueService.name);
  private readonly idempotencyMemory = new IdempotencyMemory();
  private readonly byTopic = new Map<string, TopicQueue>();
  private readonly creations = new Map<string, Promise<TopicQueue>>();
  private readonly creationTurns = new Turns(MAX_CREATIONS_AT_ONCE);
  /** A topic, there or just being made, by its name in lower case: no other may differ from it only in case. */
  private readonly topicsIgnoringCase = new Map<string, string>();
  private currentState: TopicQueueServiceState = TopicQueueServiceState.STARTING;
  private isAnnouncing = false;
  /** Those that do not have their topic queue yet, and batches. */
  private underWay = 0;
  private allAnswered: (() => void) | undefined;

  /** @internal */
  constructor(
    @Inject(ENGINE) private readonly engine: Engine,
    @Inject(EventEmitter2) private readonly events: EventEmitter2,
    @Inject(EventEmitterReadinessWatcher) private readonly listeners: EventEmitterReadinessWatcher,
  ) {}

  /**
   * Gives messages their time stamps.
   * @internal another one's in tests
   */
  protected get clock(): Clock {
    return systemClock;
  }

  get state(): TopicQueueServiceState {
    return this.currentState;
  }

  /**
   * Whether the end was reached with the log closed in good order. False after a shutdown says that closing failed: Nest logs what a shutdown
   * hook throws and ends as if nothing had happened.
   */
  get isClosed(): boolean {
    return this.currentState === TopicQueueServiceState.CLOSED;
  }

  topicQueues(): readonly TopicQueue[] {
    return [...this.byTopic.values()];
  }

  topicQueue(topic: string): TopicQueue | undefined {
    return this.byTopic.get(topic);
  }

  /** Why some publish is refused at the moment, topic by topic. Empty when all is well. */
  problems(): Promise<readonly EngineProblem[]> {
    return this.engine.problems();
  }

  /**
   * Stores a message in its topic queue, which is made if there is none.
   * @returns topic and offset, once the message is durable
   * @throws {PublishRefusedError} 409 for a topic that differs from another only in case; what {@link TopicQueue.append} refuses
   * @throws {MmmqError} CLOSED before the start and after the end; what the engine throws when it cannot make the topic or store the message
   */
  async append(message: Message): Promise<{ topic: string; offset: number }> {
    this.refuseUnlessServing();
    const { topic } = message;
    const topicQueue = this.byTopic.get(topic);
    return { topic, offset: await (topicQueue === undefined ? this.appendFirst(message) : topicQueue.append(message)) };
  }

  private async appendFirst(message: Message): Promise<number> {
    this.underWay += 1;
    try {
      return await (await this.create(message.topic)).append(message);
    } finally {
      this.underWay -= 1;
      if (this.underWay === 0) this.allAnswered?.();
    }
  }

  /**
   * Stores messages, those of each topic in their order; each stands or falls alone.
   * @returns for each message topic and offset, or what {@link append} would throw
   */
  async appendAll(messages: readonly Message[]): Promise<PromiseSettledResult<{ topic: string; offset: number }>[]> {
    const byTopic = new Map<string, Message[]>();
    const places = new Map<Message, number>(messages.map((message, place) => [message, place]));
    for (const message of messages) {
      const others = byTopic.get(message.topic);
      if (others === undefined) byTopic.set(message.topic, [message]);
      else others.push(message);
    }
    const results: PromiseSettledResult<{ topic: string; offset: number }>[] = [];
    await Promise.all(
      [...byTopic].map(async ([topic, ofTopic]) => {
        const outcomes = await this.appendAllTo(topic, ofTopic);
        for (const [index, outcome] of outcomes.entries()) {
          results[places.get(ofTopic[index] as Message) as number] =
            outcome.status === 'fulfilled' ? { status: 'fulfilled', value: { topic, offset: outcome.value } } : outcome;
        }
      }),
    );
    return results;
  }

  /** Never throws. */
  private async appendAllTo(topic: string, messages: readonly Message[]): Promise<PromiseSettledResult<number>[]> {
    this.underWay += 1;
    try {
      this.refuseUnlessServing();
      const topicQueue = this.byTopic.get(topic) ?? (await this.create(topic));
      return await topicQueue.appendAll(messages);
    } catch (reason) {
      return messages.map(() => ({ status: 'rejected', reason }));
    } finally {
      this.underWay -= 1;
      if (this.underWay === 0) this.allAnswered?.();
    }
  }

  private refuseUnlessServing(): void {
    switch (this.currentState) {
      case TopicQueueServiceState.STARTING:
        throw new MmmqError(ErrorCode.CLOSED, 'the broker is not started yet: publish after its onModuleInit');
      case TopicQueueServiceState.CLOSING:
      case TopicQueueServiceState.CLOSED:
        throw new MmmqError(ErrorCode.CLOSED, 'the broker is stopping and takes no more messages; send it again later');
      default:
    }
  }

  /**
   * Concurrent first messages of a topic share one creation. When it fails all of them fail, and the next message tries again. Those that
   * still wait for their turn when the end comes are refused: there may be thousands, and the end must not take that long.
   *
   * A flood of new topics must not keep a dispatcher waiting for its dead letters: theirs is made next, whoever waits. They are few, and no
   * producer can make one.
   */
  private create(topic: string): Promise<TopicQueue> {
    const underWay = this.creations.get(topic);
    if (underWay !== undefined) return underWay;
    const ignoringCase = topic.toLowerCase();
    const other = this.topicsIgnoringCase.get(ignoringCase);
    if (other !== undefined) {
      throw new PublishRefusedError(
        409,
        'topic',
        `there is a topic ${other} already; topics may not differ in case alone, publish to that one`,
      );
    }
    const beginCreation = (): Promise<TopicLog> => {
      this.refuseUnlessServing();
      return this.engine.create(topic);
    };
    const creation = this.creationTurns.take(beginCreation, { isUrgent: isDeadLetterTopic(topic) }).then(
      (log) => {
        this.creations.delete(topic);
        const topicQueue = this.register(log);
        if (this.isAnnouncing) this.announce(topicQueue);
        return topicQueue;
      },
      (failure: unknown) => {
        this.creations.delete(topic);
        this.topicsIgnoringCase.delete(ignoringCase);
        throw failure;
      },
    );
    this.creations.set(topic, creation);
    this.topicsIgnoringCase.set(ignoringCase, topic);
    return creation;
  }

  private register(log: TopicLog): TopicQueue {
    const topicQueue = new TopicQueue(log, { clock: this.clock, idempotencyMemory: this.idempotencyMemory });
    this.byTopic.set(log.topic, topicQueue);
    this.topicsIgnoringCase.set(log.topic.toLowerCase(), log.topic);
    return topicQueue;
  }

  /** Opens the log. What it throws refuses the start. */
  async onModuleInit(): Promise<void> {
    for (const log of await this.engine.open()) this.register(log);
    this.become(TopicQueueServiceState.SERVING, TopicQueueServiceState.STARTING);
  }

  /**
   * Listeners are attached in a hook of the same name, usually before this one. If it comes later, waiting for it here would wait for ever,
   * as Nest calls one after the other; then the announcements follow when it is done.
   */
  async onApplicationBootstrap(): Promise<void> {
    const listening = this.listeners.waitUntilReady();
    listening
      .then(() => this.announceAll())
      .catch((error: unknown) => this.logger.error(`no listener hears of the topic queues: ${String(error)}`));
    await Promise.race([listening, Promise.resolve()]);
  }

  private announceAll(): void {
    this.isAnnouncing = true;
    for (const topicQueue of this.topicQueues()) this.announce(topicQueue);
  }

  /**
   * A listener that fails is its own affair: neither the publish that made the topic nor the other listeners suffer from it. So each is called
   * on its own, where `emit` would leave out those behind one that throws: a dispatcher that misses a topic never delivers it.
   */
  private announce(topicQueue: TopicQueue): void {
    const event = new TopicQueueInitialized(topicQueue);
    for (const listener of this.events.listeners(TOPIC_QUEUE_INITIALIZED)) void this.tell(listener, event);
  }

  private async tell(listener: (event: TopicQueueInitialized) => unknown, event: TopicQueueInitialized): Promise<void> {
    try {
      await listener(event);
    } catch (error) {
      const topic = event.topicQueue.topic;
      this.logger.error(
        `a listener of ${TOPIC_QUEUE_INITIALIZED} failed for topic ${topic}`,
        error instanceof Error ? error.stack : String(error),
      );
    }
  }

  onModuleDestroy(): void {
    if (this.currentState === TopicQueueServiceState.SERVING) this.become(TopicQueueServiceState.STOPPING, TopicQueueServiceState.SERVING);
  }

  /** The HTTP server is closed by now. What is under way gets its answer, then the log is closed. */
  async onApplicationShutdown(): Promise<void> {
    if (this.currentState === TopicQueueServiceState.CLOSING || this.isClosed) return;
    this.currentState = TopicQueueServiceState.CLOSING;
    if (this.underWay > 0) await new Promise<void>((resolve) => (this.allAnswered = resolve));
    await Promise.all(this.topicQueues().map((topicQueue) => topicQueue.close()));
    await this.engine.close();
    this.become(TopicQueueServiceState.CLOSED, TopicQueueServiceState.CLOSING);
  }

  private become(next: TopicQueueServiceState, from: TopicQueueServiceState): void {
    if (this.currentState !== from) throw new Error(`the topic queue service cannot become ${next}: it is ${this.currentState}`);
    this.currentState = next;
  }
}
