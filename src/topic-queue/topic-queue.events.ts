import type { TopicQueue } from './topic-queue.js';

/**
 * The name of the event that tells of a topic queue: once for each that is found at the start, when all `@OnEvent` listeners are there,
 * and once for each that is made later, right after it was made. The payload is a {@link TopicQueueInitialized}.
 *
 * @example
 * ```ts
 * \@OnEvent(TOPIC_QUEUE_INITIALIZED)
 * onTopicQueue({ topicQueue }: TopicQueueInitialized): void { … }
 * ```
 */
export const TOPIC_QUEUE_INITIALIZED = 'topic-queue.initialized';

/** The payload of {@link TOPIC_QUEUE_INITIALIZED}: a topic queue that can be read and takes messages. */
export class TopicQueueInitialized {
  constructor(readonly topicQueue: TopicQueue) {}
}
