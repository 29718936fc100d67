import type { Mutant } from '../mutant.js';

const ENGINE = 'src/storage/file-engine.ts';
const SYNC_ROOT_IN_MAKE = 'await fileSystem.syncDirectory(this.rootDir);\n    // The directory may have been there';
const SYNC_ROOT_IN_OPEN = 'await this.parts.fileSystem.syncDirectory(this.rootDir);';
const seenIn = 'first messages of new topics';

/** The directories of a topic, and of all: their names are durable before anything in them is acknowledged. */
export const TOPIC_MUTANTS: readonly Mutant[] = [
  {
    name: 'a new topic does not sync the root directory',
    seenIn,
    edits: [{ file: ENGINE, find: SYNC_ROOT_IN_MAKE, replace: '// The directory may have been there' }],
  },
  {
    name: 'a new topic syncs the root directory before it is in it',
    seenIn,
    edits: [
      { file: ENGINE, find: SYNC_ROOT_IN_MAKE, replace: '// The directory may have been there' },
      {
        file: ENGINE,
        find: 'const dir = join(this.rootDir, topic);\n    await',
        replace: 'const dir = join(this.rootDir, topic);\n    await fileSystem.syncDirectory(this.rootDir);\n    await',
      },
    ],
  },
  {
    name: 'a failed sync of the root directory is ignored for a new topic',
    // Where no other topic is made after it, whose sync would cover this one.
    seenIn: 'one producer, one topic',
    edits: [
      {
        file: ENGINE,
        find: SYNC_ROOT_IN_MAKE,
        replace: 'await fileSystem.syncDirectory(this.rootDir).catch(() => undefined);\n    // The directory may have been there',
      },
    ],
  },
  {
    name: 'a start does not sync the root directory',
    seenIn,
    edits: [{ file: ENGINE, find: SYNC_ROOT_IN_OPEN, replace: '' }],
  },
  {
    name: 'a root directory that is made is not synced in the one above it',
    edits: [{ file: ENGINE, find: '        await fileSystem.syncDirectory(dirname(dir));\n', replace: '' }],
  },
  {
    name: 'a root directory that is found is not synced in the one above it',
    edits: [{ file: ENGINE, find: '      await this.syncIfAllowed(dirname(dir));\n', replace: '' }],
  },
  {
    name: 'a start takes no lock',
    edits: [
      { file: 'src/storage/file-system/data-directory.lock.ts', find: 'if (!(await file.tryLock()))', replace: 'if (false as boolean)' },
    ],
    insteadOfSweep: { spec: 'src/storage/file-engine.spec.ts', because: 'the simulated brokers run one after the other' },
  },
];
