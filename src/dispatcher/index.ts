export {
  HttpServiceConsumerClient,
  UndiciConsumerClient,
  type ConsumerClient,
  type ConsumerReply,
  type ConsumerRequest,
} from './consumer-client/index.js';
export { DispatcherCoreModule } from './dispatcher-core.module.js';
export { getDispatcherToken, InjectDispatcher } from './dispatcher.decorators.js';
export { DispatcherModule, type DispatcherModuleAsyncOptions, type DispatcherModuleOptions } from './dispatcher.module.js';
export { DispatcherRegistry } from './dispatcher.registry.js';
export { Dispatcher, MAX_ATTEMPTS_AT_ONCE, type DispatcherOptions } from './dispatcher.js';
export { WorkerState } from './dispatcher-worker.state.js';
export type { Subscription, WorkerCounters } from './dispatcher-worker.js';
export { batchVerdictsOf } from './batch-verdicts.js';
export { verdictOf, type Verdict, type Verdicts } from './verdict.js';
