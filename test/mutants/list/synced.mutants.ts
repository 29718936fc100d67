import type { Mutant } from '../mutant.js';

const ENGINE = 'src/storage/file-engine.ts';
const LOG = 'src/storage/file-topic-log.ts';
const SYNC = 'src/storage/recovery/topic.sync.ts';
const SYNCED = 'src/storage/recovery/synced-topics.ts';
const NODE = 'src/storage/file-system/node-file-system.ts';
const seenIn = 'a restart in good order';
const insteadOfSweep = {
  spec: 'src/storage/recovery/synced-topics.spec.ts',
  because: 'the simulated disk has stamps of its own, which fit nothing behind a power cut',
};

/** What a start believes to be on the disk already, and what it writes again because it may not be there. */
export const SYNCED_MUTANTS: readonly Mutant[] = [
  {
    name: 'a start takes every topic that was ever synced for synced',
    seenIn,
    edits: [
      {
        file: SYNCED,
        find: 'names: names === namesNow, log: log === logNow,',
        replace: 'names: namesNow !== names || true, log: logNow !== log || true,',
      },
    ],
  },
  {
    name: 'a start does not see that the last segment has changed since it was synced',
    seenIn,
    edits: [
      {
        file: SYNCED,
        find: 'shortened([String(lastBaseOffset), ...files])',
        replace: 'shortened([String(lastBaseOffset), ...files.slice(2)])',
      },
    ],
  },
  {
    name: 'a start does not see that names have changed since they were synced',
    seenIn,
    edits: [{ file: SYNCED, find: '`${shortened(directories)} ', replace: '`${shortened(directories.slice(2))} ' }],
  },
  {
    name: 'a topic is written down as synced before it is',
    seenIn,
    edits: [
      {
        file: ENGINE,
        find: '    const { hasCheckpointsDirectory } = findings;\n',
        replace:
          '    const { hasCheckpointsDirectory } = findings;\n    await this.synced.record([{ dir, lastBaseOffset: last?.baseOffset, extent: last ?? { count: 0, endPosition: 0 } }], [topic]);\n',
      },
    ],
  },
  {
    name: 'a topic whose sync has failed is written down as synced',
    seenIn,
    edits: [
      { file: LOG, find: 'return this.changesSynced === this.changesBegun;', replace: 'return this.changesSynced <= this.changesBegun;' },
    ],
  },
  {
    name: 'a start does not write again what another process may have failed to sync',
    seenIn: 'eight producers, one topic',
    edits: [{ file: SYNC, find: 'isWrittenAgain = await this.writeAgain(offsetIndex, lastPass, last);', replace: '' }],
  },
  {
    name: 'a topic whose positions found no room to be written again is written down as synced',
    edits: [{ file: SYNC, find: 'return false;', replace: 'return true;' }],
    insteadOfSweep: { spec: insteadOfSweep.spec, because: 'the simulated disk overwrites in place, which needs no room' },
  },
  {
    name: 'a start writes again all but the first of the last positions',
    seenIn: 'rotation',
    edits: [{ file: SYNC, find: 'for (let first = lastPass; first < count;', replace: 'for (let first = lastPass + 1; first < count;' }],
  },
  {
    name: 'a copy of a file has its stamp',
    edits: [
      { file: NODE, find: '`${boot} ${dev} ${ino} ${size} ${ctimeMs}`', replace: '`${boot} ${dev} ${ino > 0} ${size} ${ctimeMs > 0}`' },
    ],
    insteadOfSweep,
  },
  {
    name: 'a copy that is put back over a file has its stamp',
    edits: [{ file: NODE, find: '`${boot} ${dev} ${ino} ${size} ${ctimeMs}`', replace: '`${boot} ${dev} ${ino} ${size} ${ctimeMs > 0}`' }],
    insteadOfSweep,
  },
  {
    name: 'a stamp is the same on a machine that was restarted',
    edits: [{ file: NODE, find: '`${boot} ${dev} ${ino} ${size} ${ctimeMs}`', replace: '`${dev} ${ino} ${size} ${ctimeMs}`' }],
    insteadOfSweep,
  },
  {
    name: 'a stamp is written down before the clock has moved on',
    edits: [{ file: SYNCED, find: 'if (stamp.settlesInMs === 0) lines', replace: 'if (stamp.settlesInMs >= 0) lines' }],
    insteadOfSweep,
  },
];
