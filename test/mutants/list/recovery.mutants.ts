import type { Mutant } from '../mutant.js';

const ENGINE = 'src/storage/file-engine.ts';
const INSPECTION = 'src/storage/recovery/segment.inspection.ts';
const TOPIC_INSPECTION = 'src/storage/recovery/topic.inspection.ts';
const REPAIR = 'src/storage/recovery/topic.repair.ts';
const SYNC = 'src/storage/recovery/topic.sync.ts';

const SYNC_SEGMENT = 'await segments.sync(join(dir, segmentFileName(last.baseOffset)));';
const SYNC_INDEX = 'await offsetIndexes.sync(offsetIndex);';
const SYNC_CHECKPOINTS = 'if (hasCheckpointsDirectory) await this.fileSystem.syncDirectory(join(dir, CHECKPOINTS_DIRECTORY));';
const SYNC_TOPIC = 'await this.fileSystem.syncDirectory(dir);';
const FOUND = 'return this.withCuts({ count, endPosition: last.end }, lastPass, indexSize, segmentSize);';
const CUT_SYNC = 'await this.stores.segments.sync(repair.path);';
const PUSH_INDEX_CUT = 'if (indexSize > indexEnd) {';
const PUSH_SEGMENT_CUT = 'if (surplus > 0) {';
const seenIn = 'rotation';

/** What a start finds, what it takes it for, and what it does about it before anybody sees a message. */
export const RECOVERY_MUTANTS: readonly Mutant[] = [
  { name: 'a start does not sync the last index', seenIn, edits: [{ file: SYNC, find: SYNC_INDEX, replace: '' }] },
  {
    name: 'a start does not sync the directory of the checkpoints',
    seenIn,
    edits: [{ file: SYNC, find: SYNC_CHECKPOINTS, replace: '' }],
  },
  {
    name: 'a start does not sync the directory of a topic',
    seenIn,
    edits: [{ file: SYNC, find: SYNC_TOPIC, replace: '' }],
  },
  {
    name: 'a start ignores that a sync fails',
    seenIn,
    edits: [
      { file: SYNC, find: SYNC_SEGMENT, replace: SYNC_SEGMENT.replace(';', '.catch(() => undefined);') },
      { file: SYNC, find: SYNC_INDEX, replace: SYNC_INDEX.replace(';', '.catch(() => undefined);') },
    ],
  },
  {
    name: 'a start serves before its syncs are done',
    seenIn,
    edits: [
      { file: SYNC, find: SYNC_SEGMENT, replace: SYNC_SEGMENT.replace('await', 'void').replace(';', '.catch(() => undefined);') },
      { file: SYNC, find: SYNC_INDEX, replace: SYNC_INDEX.replace('await', 'void').replace(';', '.catch(() => undefined);') },
    ],
  },
  {
    name: 'a cut is not synced before the next one',
    edits: [{ file: REPAIR, find: CUT_SYNC, replace: '' }],
    insteadOfSweep: {
      spec: 'src/storage/recovery/recovery.spec.ts',
      because: 'the order matters only where a record of the index was torn before its last byte, which the bounded part seldom does',
    },
  },
  {
    name: 'no repair is done',
    seenIn,
    edits: [{ file: ENGINE, find: 'await repair.apply(step);', replace: '' }],
  },
  {
    name: 'a repair that fails is passed over',
    seenIn,
    edits: [
      { file: ENGINE, find: "if (step.kind !== 'make' || !(error instanceof FileError) || !error.isDiskFull) throw error;", replace: '' },
    ],
  },
  {
    name: 'the segment is cut before the index',
    edits: [
      {
        file: INSPECTION,
        find: 'return { extent, lastPass, repairs };',
        replace: 'return { extent, lastPass, repairs: repairs.toReversed() };',
      },
    ],
    insteadOfSweep: {
      spec: 'src/storage/recovery/recovery.spec.ts',
      because: 'the order matters only where a record of the index was torn before its last byte, which the bounded part seldom does',
    },
  },
  {
    name: 'surplus bytes of a segment are not cut',
    seenIn,
    edits: [{ file: INSPECTION, find: PUSH_SEGMENT_CUT, replace: 'if (surplus > PASS_MAX_BYTES) {' }],
  },
  {
    name: 'half records of an index are not cut',
    seenIn,
    edits: [{ file: INSPECTION, find: PUSH_INDEX_CUT, replace: 'if (indexSize > indexEnd + INDEX_RECORD_BYTES) {' }],
  },
  {
    name: 'a half record counts as a whole one',
    edits: [{ file: INSPECTION, find: 'Math.floor(indexSize / INDEX_RECORD_BYTES)', replace: 'Math.ceil(indexSize / INDEX_RECORD_BYTES)' }],
    insteadOfSweep: {
      spec: 'src/storage/recovery/recovery.spec.ts',
      because: 'only a write that failed leaves one there, and a crash before it is cut back',
    },
  },
  {
    name: 'a start cuts one message too many',
    seenIn,
    edits: [
      {
        file: INSPECTION,
        find: FOUND,
        replace: FOUND.replace('{ count, endPosition: last.end }', '{ count: count - 1, endPosition: last.position }'),
      },
    ],
  },
  {
    name: 'a start with something to cut cuts one message too many',
    seenIn,
    edits: [
      {
        file: INSPECTION,
        find: FOUND,
        replace: `if (last.end < segmentSize) return this.withCuts({ count: count - 1, endPosition: last.position }, lastPass, indexSize, segmentSize);
    ${FOUND}`,
      },
    ],
  },
  {
    name: 'a start cuts one byte too few',
    seenIn,
    edits: [{ file: INSPECTION, find: '        size: extent.endPosition,', replace: '        size: extent.endPosition + 1,' }],
  },
  {
    name: 'a start cuts one record too few',
    seenIn,
    edits: [
      { file: INSPECTION, find: '        size: indexEnd,', replace: '        size: Math.min(indexEnd + INDEX_RECORD_BYTES, indexSize),' },
    ],
  },
  {
    name: 'zeros at the end of an index count as positions',
    seenIn,
    edits: [{ file: INSPECTION, find: 'while (count > 1) {', replace: 'while (count > records) {' }],
  },
  {
    name: 'holes in an index are not filled',
    seenIn: 'sixty-four producers, one topic',
    edits: [
      {
        file: INSPECTION,
        find: 'for (const { first, positions } of this.provenRuns()) {',
        replace: 'for (const { first, positions } of [] as ReturnType<SegmentInspection["provenRuns"]>) {',
      },
    ],
  },
  {
    name: 'holes in an index are not seen',
    seenIn: 'sixty-four producers, one topic',
    edits: [{ file: INSPECTION, find: 'if (doubtful === undefined) return count;', replace: 'if (count > 0) return count;' }],
  },
  {
    name: 'holes in an index are filled with the position before',
    seenIn: 'sixty-four producers, one topic',
    edits: [{ file: INSPECTION, find: 'proven.push([start + index, next]);', replace: 'proven.push([start + index, before ?? next]);' }],
  },
  {
    name: 'holes in an index are filled one record too late',
    seenIn: 'sixty-four producers, one topic',
    edits: [{ file: INSPECTION, find: '        first,\n        positions,\n', replace: '        first: first + 1,\n        positions,\n' }],
  },
  {
    name: 'zeros where the first message of a segment should be refuse the start',
    edits: [{ file: INSPECTION, find: 'if (count === 1 && segmentSize > 0 &&', replace: 'if (count === 1 && segmentSize < 0 &&' }],
    insteadOfSweep: {
      spec: 'src/storage/recovery/recovery.spec.ts',
      because: 'the simulated disk keeps what a sync of the segment said before the index was written',
    },
  },
  {
    name: 'entries without a position refuse the start',
    seenIn,
    edits: [{ file: INSPECTION, find: 'if (surplus > PASS_MAX_BYTES) {', replace: 'if (surplus > 0) {' }],
  },
  {
    name: 'a segment file without its twin refuses the start',
    seenIn,
    edits: [{ file: TOPIC_INSPECTION, find: 'if (size > 0 || !isLast)', replace: 'if (size >= 0)' }],
  },
  {
    name: 'a segment file without its twin is left alone',
    seenIn,
    edits: [{ file: REPAIR, find: 'await (await this.fileSystem.open(repair.path, OpenMode.EXISTING_OR_NEW)).close();', replace: '' }],
  },
  {
    name: 'an empty segment at the end is taken for one that is followed by another',
    seenIn,
    edits: [{ file: TOPIC_INSPECTION, find: 'const findings = !isLast ?', replace: 'const findings = !isLast || index > 0 ?' }],
  },
  {
    name: 'an error of the disk is taken for corruption',
    seenIn,
    edits: [
      {
        file: 'src/storage/recovery/corrupt-log.error.ts',
        find: 'findings.every((finding) => finding.code === ErrorCode.CORRUPT) ? ErrorCode.CORRUPT : ErrorCode.IO',
        replace: 'ErrorCode.CORRUPT',
      },
    ],
  },
  {
    name: 'a topic without messages is forgotten by a start',
    edits: [
      {
        file: ENGINE,
        find: 'if (findings.segments.length > 0 || findings.hasCheckpointsDirectory)',
        replace: 'if (findings.segments.length > 0)',
      },
    ],
    insteadOfSweep: { spec: 'src/storage/file-engine.spec.ts', because: 'nothing is promised of a topic before its first message' },
  },
  {
    name: 'a checkpoint beyond the end is left where it is',
    edits: [{ file: TOPIC_INSPECTION, find: 'offset !== undefined && offset > count', replace: 'offset !== undefined && offset < 0' }],
    insteadOfSweep: {
      spec: 'src/storage/recovery/recovery.spec.ts',
      because: 'no crash leaves one: a message is durable before it is sent',
    },
  },
];
