export { ErrorCode, InvalidValueError, MmmqError, type Backoff, type Clock } from '../core/index.js';
export type { ProducerTransport, TransportAnswer, TransportRequest } from '../producer/index.js';
export type { ConsumerFault, FaultOptions } from './consumer-fault.js';
export type { TestingDeadLetter, TestingMessage } from './stored-messages.js';
export { TestingBroker, type DrainOptions, type TestingDispatcher, type TestingProduceOptions } from './testing.broker.js';
export { TestingClock } from './testing.clock.js';
export type { TestingDelivery } from './testing-delivery.js';
