import type { Clock } from '../core/index.js';
import type { TopicQueueService } from '../topic-queue/index.js';

/** What the broker lends to a dispatcher while the application runs. */
export interface DispatcherRuntime {
  /** Where dead letters are appended. */
  readonly topicQueues: Pick<TopicQueueService, 'append'>;
  readonly clock: Clock;
  /** 0 (inclusive) to 1 (exclusive): the chance in the waits. */
  readonly random: () => number;
}
