/** The public interface of the package. What is not here is nobody's to rely on. */
export { BrokerModule, type BrokerModuleAsyncOptions } from './broker/index.js';
export { ErrorCode, Host, InvalidValueError, MmmqError, TopicPattern, WebProtocol } from './core/index.js';
export type { Backoff, EngineProblem, LogEntry, ReadLimits } from './core/index.js';
export {
  Dispatcher,
  DispatcherModule,
  DispatcherRegistry,
  getDispatcherToken,
  HttpServiceConsumerClient,
  InjectDispatcher,
  UndiciConsumerClient,
  WorkerState,
  type ConsumerClient,
  type ConsumerReply,
  type ConsumerRequest,
  type DispatcherModuleAsyncOptions,
  type DispatcherModuleOptions,
  type DispatcherOptions,
  type Subscription,
  type WorkerCounters,
} from './dispatcher/index.js';
export { messageOf, PublishRefusedError, type Message, type MessageDraft, type RefusalStatus } from './message/index.js';
export { HealthModule } from './operations/health/index.js';
export {
  InvalidSettingsError,
  type BrokerOptions,
  type DispatcherBatch,
  type DispatcherDefinition,
  type SettingProblem,
} from './settings/index.js';
export {
  TOPIC_QUEUE_INITIALIZED,
  TopicQueueInitialized,
  TopicQueueService,
  TopicQueueServiceState,
  TopicQueueState,
  type TopicQueue,
} from './topic-queue/index.js';
