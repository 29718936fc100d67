export { CheckpointStore } from './checkpoint/index.js';
export { FileEngine, type FileEngineOptions, type FileEngineParts } from './file-engine.js';
export { DataDirectoryLockedError, FileError, NodeFileSystem, OpenFiles, type FileSystem } from './file-system/index.js';
export { CorruptLogError, StartRefusedError } from './recovery/index.js';
export { OffsetIndexStore, SegmentStore } from './segment/index.js';
export { StorageModule } from './storage.module.js';
