export { CHECKPOINTS_DIRECTORY, CheckpointStore, checkpointFileName, parseCheckpointFileName } from './checkpoint/index.js';
export { RESERVE_FILE_NAME } from './disk-reserve.js';
export { FileEngine, MAX_FILES_IN_USE } from './file-engine.js';
export {
  DataDirectoryLock,
  DataDirectoryLockedError,
  FileError,
  MAX_IDLE_OPEN_FILES,
  NodeFileSystem,
  openFileLimit,
  OpenFiles,
  OpenMode,
  ReadOnlyFileSystem,
  readFully,
  writeFully,
  type File,
  type FileSystem,
} from './file-system/index.js';
export { CorruptLogError, SegmentInspection, SYNCED_FILE_NAME, syncedLine, TopicInspection, type Repair } from './recovery/index.js';
export {
  entryBytesAt,
  INDEX_RECORD_BYTES,
  offsetIndexFileName,
  OffsetIndexStore,
  parseSegmentName,
  payloadAt,
  segmentFileName,
  SegmentStore,
  type SegmentExtent,
  type SegmentStores,
} from './segment/index.js';
export { FILE_SYSTEM, StorageModule } from './storage.module.js';
