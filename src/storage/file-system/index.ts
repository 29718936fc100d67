export { DataDirectoryLock, DataDirectoryLockedError } from './data-directory.lock.js';
export { FileError } from './file.error.js';
export { OpenMode, type DirectoryEntry, type File, type FileSystem, type Room, type Stamp } from './file-system.port.js';
export { FileStore } from './file-store.js';
export { NodeFileSystem } from './node-file-system.js';
export { openFileLimit } from './open-file-limit.js';
export { MAX_IDLE_OPEN_FILES, OpenFiles } from './open-files.js';
export { ReadOnlyFileSystem } from './read-only.file-system.js';
export { readFully, writeFully } from './positional-io.js';
