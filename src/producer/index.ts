export { ErrorCode, InvalidValueError, MmmqError, type Backoff } from '../core/index.js';
export {
  DiskQueueLockedError,
  FileError,
  OpenMode,
  type DirectoryEntry,
  type File,
  type FileSystem,
  type Room,
  type Stamp,
} from '../disk-queue/index.js';
export { NotStoredError } from './not-stored.error.js';
export type { MessageDetails, TraceHeaders } from './outgoing-message.js';
export { ProduceIndeterminateError } from './produce-indeterminate.error.js';
export { ProduceRefusedError, type Refusal } from './produce-refused.error.js';
export { ProduceError } from './produce.error.js';
export { ProducerClosedError } from './producer-closed.error.js';
export { ProducerFullError } from './producer-full.error.js';
export { ProducerModule, type ProducerModuleAsyncOptions, type ProducerModuleOptions } from './producer.module.js';
export type { AcknowledgedEvent, FailedEvent, MessageEvent, ProducerObserver, RefusedEvent } from './producer.observer.js';
export type { ProducerAuth, ProducerBatch, ProducerOptions, SpoolOptions } from './producer.options.js';
export { Producer, type ProduceMessage, type ProduceOptions } from './producer.js';
export { rawJson, RawJson } from './raw-json.js';
export type { AcknowledgedReceipt, ProduceResult, Receipt, SpooledReceipt } from './receipt.js';
export { TransportError, type ProducerTransport, type TransportAnswer, type TransportRequest } from './transport/index.js';
