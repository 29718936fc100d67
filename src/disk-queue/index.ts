export { ErrorCode, InvalidValueError, MmmqError } from '../core/index.js';
export {
  FileError,
  OpenMode,
  type DirectoryEntry,
  type File,
  type FileSystem,
  type Room,
  type Stamp,
} from '../storage/file-system/index.js';
export { DiskQueueClosedError } from './disk-queue-closed.error.js';
export { DiskQueueLockedError } from './disk-queue-locked.error.js';
export { getDiskQueueToken, InjectDiskQueue } from './disk-queue.decorators.js';
export { DiskQueueModule, type DiskQueueModuleAsyncOptions } from './disk-queue.module.js';
export { DiskQueue, type InFlightMessage } from './disk-queue.js';
export type { DiskQueueOptions } from './disk-queue.options.js';
export { MessageSizeRefusedError } from './message-size-refused.error.js';
