import type { OnApplicationBootstrap } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { ErrorCode, MmmqError } from '../core/index.js';
import { TOPIC_QUEUE_INITIALIZED, TopicQueueInitialized } from '../topic-queue/index.js';
import type { Dispatcher } from './dispatcher.js';

/**
 * The dispatchers of one `DispatcherModule.forRootAsync`. Their number is known only when the factory has run, too late for a provider
 * each; so one provider holds them and passes on what concerns them.
 */
export class DispatcherGroup implements OnApplicationBootstrap {
  constructor(readonly dispatchers: readonly Dispatcher[]) {}

  /** @throws {MmmqError} when the factory gave no dispatcher of this name */
  get(name: string): Dispatcher {
    const dispatcher = this.dispatchers.find((member) => member.name === name);
    if (dispatcher !== undefined) return dispatcher;
    const given = this.dispatchers.map((member) => `"${member.name}"`).join(', ') || 'none';
    throw new MmmqError(
      ErrorCode.INVALID_SETTINGS,
      `DispatcherModule.forRootAsync: names has "${name}", but useFactory gave no dispatcher of that name (it gave: ${given})`,
    );
  }

  onApplicationBootstrap(): void {
    for (const dispatcher of this.dispatchers) dispatcher.onApplicationBootstrap();
  }

  @OnEvent(TOPIC_QUEUE_INITIALIZED)
  onTopicQueueInitialized(event: TopicQueueInitialized): void {
    for (const dispatcher of this.dispatchers) dispatcher.onTopicQueueInitialized(event);
  }
}
