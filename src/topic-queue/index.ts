export { ENGINE } from '../core/index.js';
export type { IdempotencyLimits } from './idempotency-window.js';
export { IdempotencyMemory } from './idempotency-memory.js';
export { TOPIC_QUEUE_INITIALIZED, TopicQueueInitialized } from './topic-queue.events.js';
export { TopicQueueModule } from './topic-queue.module.js';
export { TopicQueueServiceState } from './topic-queue-service.state.js';
export { TopicQueueService } from './topic-queue.service.js';
export { TopicQueueState } from './topic-queue.state.js';
export { TopicQueue } from './topic-queue.js';
