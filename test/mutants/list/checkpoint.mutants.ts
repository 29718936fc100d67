import type { Mutant } from '../mutant.js';

const STORE = 'src/storage/checkpoint/checkpoint.store.ts';
const LOG = 'src/storage/file-topic-log.ts';
const WRITE = 'checkpoints.write(this.checkpointPath(dispatcher), nextOffset)';
const seenIn = 'dispatching';

/** How far a dispatcher has come: never behind what it was told is committed, never beyond what has a verdict. */
export const CHECKPOINT_MUTANTS: readonly Mutant[] = [
  { name: 'a commit is not synced', seenIn, edits: [{ file: STORE, find: '        await file.sync();\n', replace: '' }] },
  {
    name: 'a commit is answered before its sync is done',
    seenIn,
    edits: [{ file: STORE, find: '        await file.sync();\n', replace: '        void file.sync().catch(() => undefined);\n' }],
  },
  {
    name: 'a commit that fails is passed over',
    seenIn,
    edits: [{ file: STORE, find: '      this.reopen(path);\n      throw error;', replace: '      this.reopen(path);' }],
  },
  {
    name: 'a commit empties the file first',
    seenIn,
    edits: [
      { file: STORE, find: 'await writeFully(file, bytes, 0);', replace: 'await file.truncate(0); await writeFully(file, bytes, 0);' },
    ],
  },
  {
    name: 'a commit takes a new file in the place of the old one',
    seenIn,
    edits: [
      {
        file: STORE,
        find: '      await this.files.use(path, async (file) => {\n        await writeFully',
        replace: `      this.reopen(path);
      await this.fileSystem.remove(path);
      await (await this.fileSystem.open(path, OpenMode.NEW)).close();
      await this.files.use(path, async (file) => {
        await writeFully`,
      },
    ],
  },
  {
    name: 'a commit says one too many',
    seenIn,
    edits: [{ file: LOG, find: WRITE, replace: WRITE.replace('nextOffset', 'nextOffset + 1') }],
  },
  {
    name: 'a commit says one too few',
    seenIn,
    edits: [{ file: LOG, find: WRITE, replace: WRITE.replace('nextOffset', 'Math.max(0, nextOffset - 1)') }],
  },
  {
    name: 'a new checkpoint does not sync its directory',
    seenIn,
    edits: [{ file: STORE, find: 'await this.fileSystem.syncDirectory(directory);', replace: '' }],
  },
  {
    name: 'a new checkpoint makes its directory and does not sync the one of the topic',
    seenIn,
    edits: [
      {
        file: 'src/storage/file-engine.ts',
        find: 'await fileSystem.makeDirectory(join(dir, CHECKPOINTS_DIRECTORY));',
        replace: '',
      },
      { file: STORE, find: 'await this.fileSystem.syncDirectory(topicDir);', replace: '' },
    ],
  },
  {
    name: 'a new checkpoint syncs no directory',
    seenIn,
    edits: [
      { file: STORE, find: 'await this.fileSystem.syncDirectory(directory);', replace: '' },
      { file: STORE, find: 'await this.fileSystem.syncDirectory(topicDir);', replace: '' },
    ],
  },
  {
    name: 'a checkpoint that holds no offset counts as the end',
    seenIn,
    edits: [
      {
        file: LOG,
        find: 'await checkpoints.reset(path);\n    return 0;',
        replace: 'await checkpoints.write(path, this.count);\n    return this.count;',
      },
    ],
  },
  {
    name: 'a checkpoint that holds no offset stops the dispatcher',
    seenIn,
    edits: [{ file: LOG, find: 'await checkpoints.reset(path);', replace: "throw new Error('no offset');" }],
  },
  {
    name: 'a dispatcher begins at the end of a topic that it has not seen',
    seenIn,
    edits: [
      {
        file: STORE,
        find: 'return length === CHECKPOINT_BYTES && offset >= 0n ? Number(offset) : undefined;',
        replace: 'return length === CHECKPOINT_BYTES && offset > 0n ? Number(offset) : length === 0 ? undefined : 1;',
      },
    ],
  },
  {
    name: 'a commit that failed is tried again through the same handle',
    edits: [{ file: STORE, find: '      this.reopen(path);\n', replace: '' }],
    insteadOfSweep: {
      spec: 'src/storage/checkpoint/checkpoint.store.spec.ts',
      because: 'the simulated disk loses bytes in a failed sync, and does not tie that to a handle',
    },
  },
  {
    name: 'a checkpoint that holds no offset is put at 0 before what was there is gone for good',
    edits: [
      { file: STORE, find: '      await this.sync(path);\n      await this.write(path, 0);', replace: '      await this.write(path, 0);' },
    ],
    insteadOfSweep: {
      spec: 'src/storage/checkpoint/checkpoint.store.spec.ts',
      because: 'npm run crash sees it, and the part of it that the suite has time for seldom does',
    },
  },
];
