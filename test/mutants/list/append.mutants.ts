import type { Mutant } from '../mutant.js';

const SEGMENT = 'src/storage/segment/segment.ts';
const LOG = 'src/storage/file-topic-log.ts';

const SYNC_SEGMENT = 'await orUntrusted(() => segments.sync(this.segmentPath));';
const SYNC_INDEX = 'await orUntrusted(() => offsetIndexes.sync(this.offsetIndexPath));';
const WRITE_SEGMENT = 'await this.orCutBack(() => segments.write(this.segmentPath, bytes, this.endPosition));';
const WRITE_INDEX = 'await this.orCutBack(() => offsetIndexes.write(this.offsetIndexPath, positions, this.count));';
const SHOW = 'this.durable = { count: this.count + payloads.length, endPosition: this.endPosition + bytes.length };';
const CUT_INDEX = 'await offsetIndexes.truncate(this.offsetIndexPath, this.count * INDEX_RECORD_BYTES);';
const CUT_SEGMENT = 'await segments.truncate(this.segmentPath, this.endPosition);';
const CUT_BACK_SYNC_INDEX = '      await offsetIndexes.sync(this.offsetIndexPath);';
const CUT_BACK_SYNC_SEGMENT = '      await segments.sync(this.segmentPath);';

/** One append: entries, sync, positions, sync, visible, ACK; and what becomes of it when a step fails. */
export const APPEND_MUTANTS: readonly Mutant[] = [
  { name: 'an append does not sync the segment', edits: [{ file: SEGMENT, find: SYNC_SEGMENT, replace: '' }] },
  { name: 'an append does not sync the index', edits: [{ file: SEGMENT, find: SYNC_INDEX, replace: '' }] },
  {
    name: 'an append syncs the segment only after the positions are written',
    edits: [
      { file: SEGMENT, find: SYNC_SEGMENT, replace: '' },
      { file: SEGMENT, find: SYNC_INDEX, replace: `${SYNC_SEGMENT} ${SYNC_INDEX}` },
    ],
  },
  {
    name: 'an append syncs both files at the same time',
    edits: [
      { file: SEGMENT, find: SYNC_SEGMENT, replace: '' },
      {
        file: SEGMENT,
        find: SYNC_INDEX,
        replace: `await orUntrusted(async () => {
          await Promise.all([segments.sync(this.segmentPath), offsetIndexes.sync(this.offsetIndexPath)]);
        });`,
      },
    ],
  },
  {
    name: 'an append writes the positions before the entries',
    edits: [
      { file: SEGMENT, find: WRITE_SEGMENT, replace: '' },
      { file: SEGMENT, find: SYNC_SEGMENT, replace: '' },
      { file: SEGMENT, find: SYNC_INDEX, replace: `${SYNC_INDEX} ${WRITE_SEGMENT} ${SYNC_SEGMENT}` },
    ],
  },
  {
    name: 'an append is answered before the sync of its entries is done',
    edits: [{ file: SEGMENT, find: SYNC_SEGMENT, replace: 'void segments.sync(this.segmentPath).catch(() => undefined);' }],
  },
  {
    name: 'an append is answered before the sync of its positions is done',
    edits: [{ file: SEGMENT, find: SYNC_INDEX, replace: 'void offsetIndexes.sync(this.offsetIndexPath).catch(() => undefined);' }],
  },
  {
    name: 'an append is answered before its positions are written',
    edits: [
      { file: SEGMENT, find: WRITE_INDEX, replace: '' },
      {
        file: SEGMENT,
        find: SYNC_INDEX,
        replace: `void offsetIndexes
          .write(this.offsetIndexPath, positions, this.count)
          .then(() => offsetIndexes.sync(this.offsetIndexPath))
          .catch(() => undefined);`,
      },
    ],
  },
  {
    name: 'messages are shown before their positions are synced',
    edits: [
      { file: SEGMENT, find: SHOW, replace: '' },
      { file: SEGMENT, find: SYNC_INDEX, replace: `${SHOW} ${SYNC_INDEX}` },
    ],
  },
  {
    name: 'messages are shown before their entries are synced',
    edits: [
      { file: SEGMENT, find: SHOW, replace: '' },
      { file: SEGMENT, find: WRITE_INDEX, replace: WRITE_INDEX.replace('this.count', 'this.count - payloads.length') },
      { file: SEGMENT, find: SYNC_SEGMENT, replace: `${SHOW} ${SYNC_SEGMENT}` },
    ],
  },
  {
    name: 'dispatchers hear of messages before they are there, and not after',
    seenIn: 'first messages of new topics',
    edits: [
      { file: LOG, find: 'if (offsets.length > 0) this.announceArrival();', replace: '' },
      { file: LOG, find: 'const first = this.count;', replace: 'const first = this.count; this.announceArrival();' },
    ],
  },
  {
    name: 'dispatchers do not hear of the messages that a failed append has stored',
    edits: [
      {
        file: LOG,
        find: 'if (offsets.length > 0) this.announceArrival();',
        replace: 'if (offsets.length > 0 && failure === undefined) this.announceArrival();',
      },
    ],
    insteadOfSweep: {
      spec: 'src/storage/file-topic-log.spec.ts',
      because: 'it uses every broker on after a fault, and the next message wakes those who rest',
    },
  },
  {
    name: 'a failed sync of the entries is ignored',
    edits: [{ file: SEGMENT, find: SYNC_SEGMENT, replace: 'await segments.sync(this.segmentPath).catch(() => undefined);' }],
  },
  {
    name: 'a failed sync of the positions is ignored',
    edits: [{ file: SEGMENT, find: SYNC_INDEX, replace: 'await offsetIndexes.sync(this.offsetIndexPath).catch(() => undefined);' }],
  },
  {
    name: 'a failed sync of the entries is tried again, and believed',
    edits: [
      {
        file: SEGMENT,
        find: SYNC_SEGMENT,
        replace: 'await orUntrusted(() => segments.sync(this.segmentPath).catch(() => segments.sync(this.segmentPath)));',
      },
    ],
  },
  {
    name: 'a failed sync of the positions is tried again, and believed',
    edits: [
      {
        file: SEGMENT,
        find: SYNC_INDEX,
        replace: 'await orUntrusted(() => offsetIndexes.sync(this.offsetIndexPath).catch(() => offsetIndexes.sync(this.offsetIndexPath)));',
      },
    ],
  },
  {
    name: 'a failed sync counts as a failed write: cut back and gone on',
    edits: [
      { file: SEGMENT, find: SYNC_SEGMENT, replace: 'await this.orCutBack(() => segments.sync(this.segmentPath));' },
      { file: SEGMENT, find: SYNC_INDEX, replace: 'await this.orCutBack(() => offsetIndexes.sync(this.offsetIndexPath));' },
    ],
    insteadOfSweep: {
      spec: 'src/storage/file-topic-log.spec.ts',
      because: 'on the simulated disk whatever is written once more behind the cut is safe; a kernel promises no such thing',
    },
  },
  {
    name: 'a failed write is not cut back',
    edits: [{ file: SEGMENT, find: 'await orUntrusted(() => this.cutBack());', replace: '' }],
  },
  {
    name: 'cutting back leaves the index as it is',
    edits: [{ file: SEGMENT, find: CUT_INDEX, replace: '' }],
  },
  {
    name: 'cutting back leaves the segment as it is',
    edits: [{ file: SEGMENT, find: CUT_SEGMENT, replace: '' }],
  },
  {
    name: 'cutting back does not sync the index',
    edits: [{ file: SEGMENT, find: CUT_BACK_SYNC_INDEX, replace: '' }],
  },
  {
    name: 'cutting back cuts the segment before the index',
    edits: [
      { file: SEGMENT, find: CUT_INDEX, replace: `${CUT_SEGMENT} await segments.sync(this.segmentPath);` },
      { file: SEGMENT, find: `${CUT_SEGMENT}\n${CUT_BACK_SYNC_SEGMENT}`, replace: '' },
    ],
  },
  {
    name: 'cutting back takes one message too many',
    edits: [{ file: SEGMENT, find: CUT_INDEX, replace: CUT_INDEX.replace('this.count', 'Math.max(0, this.count - 1)') }],
  },
  {
    name: 'a topic takes messages on after a failed sync',
    edits: [
      {
        file: LOG,
        find: '      this.transition(TopicLogState.REFUSING);\n',
        replace: '      return error;\n',
      },
    ],
  },
  {
    name: 'a topic is re-opened without being cut back',
    edits: [{ file: LOG, find: 'await this.chain.cutBack();', replace: '' }],
  },
  {
    name: 'a topic that refuses is never re-opened',
    edits: [{ file: LOG, find: 'this.reopening = this.reopen();', replace: '' }],
  },
  {
    name: 'a re-opened topic is not looked at',
    edits: [{ file: LOG, find: 'await this.verify();', replace: '' }],
    insteadOfSweep: {
      spec: 'src/storage/file-topic-log.spec.ts',
      because: 'the simulated disk changes nothing behind the back of a broker',
    },
  },
  {
    name: 'a re-opened topic keeps the handles that saw the failure',
    edits: [{ file: 'src/storage/segment/segment-chain.ts', find: 'this.last?.reopen();', replace: '' }],
    insteadOfSweep: {
      spec: 'src/storage/file-topic-log.spec.ts',
      because: 'the simulated disk loses bytes in a failed sync, and does not tie that to a handle',
    },
  },
  {
    name: 'a pass counts as stored although a part of it failed',
    edits: [{ file: LOG, find: 'Array.from({ length: this.count - first }', replace: 'Array.from({ length: payloads.length }' }],
  },
  {
    name: 'a message that a failed append has stored is refused, with the rest of its pass',
    edits: [
      {
        file: LOG,
        find: 'return failure === undefined ? { offsets } : { offsets, failure };',
        replace: 'return failure === undefined ? { offsets } : { offsets: [], failure };',
      },
    ],
    insteadOfSweep: {
      spec: 'src/storage/file-topic-log.spec.ts',
      because: 'a producer that is refused must not count on its message being gone',
    },
  },
  {
    name: 'a short write counts as a whole one',
    edits: [{ file: 'src/storage/file-system/positional-io.ts', find: 'written += count;', replace: 'written = bytes.length;' }],
  },
  {
    name: 'a short read counts as a whole one',
    edits: [{ file: 'src/storage/file-system/positional-io.ts', find: 'filled += count;', replace: 'filled = buffer.length;' }],
  },
  {
    name: 'a short read counts as the end of the file',
    edits: [{ file: 'src/storage/file-system/positional-io.ts', find: 'filled += count;', replace: 'filled += count; break;' }],
  },
  {
    name: 'the rest of a short write goes to its beginning',
    edits: [{ file: 'src/storage/file-system/positional-io.ts', find: 'position + written)', replace: 'position)' }],
  },
  {
    name: 'a file that could not be opened once is never opened again',
    edits: [
      {
        file: 'src/storage/file-system/open-files.ts',
        find: 'opened.file.catch(() => this.letGo(opened));',
        replace: 'opened.file.catch(() => undefined);',
      },
    ],
  },
];
