export { CheckpointStore } from './checkpoint/index.js';
export { FileEngine } from './file-engine.js';
export { OpenFiles } from './file-system/index.js';
export { OffsetIndexStore, SegmentStore } from './segment/index.js';
export { FILE_SYSTEM, StorageModule } from './storage.module.js';
