import { setImmediate } from 'node:timers/promises';
import { EventEmitter2, type EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import type { Clock } from '../core/index.js';
import { TOPIC_QUEUE_INITIALIZED, type TopicQueueInitialized, TopicQueueService } from '../topic-queue/index.js';
import { MemoryEngine } from './memory.engine.js';

/** The topic queues of a broker, over an engine in memory and with a clock of the test. */
export class TestingTopicQueueService extends TopicQueueService {
  readonly memory: MemoryEngine;
  private readonly emitter: EventEmitter2;

  constructor(private readonly testingClock: Clock) {
    const [engine, emitter] = [new MemoryEngine(), new EventEmitter2()];
    super(engine, emitter, { waitUntilReady: async () => undefined } as EventEmitterReadinessWatcher);
    this.memory = engine;
    this.emitter = emitter;
  }

  async start(): Promise<void> {
    await this.onModuleInit();
    await this.onApplicationBootstrap();
    // So that topics are announced from here on.
    await setImmediate();
  }

  async stop(): Promise<void> {
    this.onModuleDestroy();
    await this.onApplicationShutdown();
  }

  /** Of all topics, those that are there and those that come. */
  onTopicQueue(listener: (event: TopicQueueInitialized) => void): void {
    for (const topicQueue of this.topicQueues()) listener({ topicQueue });
    this.emitter.on(TOPIC_QUEUE_INITIALIZED, listener);
  }

  protected override get clock(): Clock {
    return this.testingClock;
  }
}
