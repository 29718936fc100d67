import type { Mutant } from '../mutant.js';

const CHAIN = 'src/storage/segment/segment-chain.ts';
const SYNC_TOPIC = 'await this.fileSystem.syncDirectory(topicDir);';
const REMAKE = '      await this.fileSystem.remove(path);\n      await (await this.fileSystem.open(path, OpenMode.NEW)).close();';
const seenIn = 'rotation';

/** A new segment: complete, synced and acknowledged before the next is begun; its names durable before its first message. */
export const ROTATION_MUTANTS: readonly Mutant[] = [
  { name: 'a new segment does not sync the directory', edits: [{ file: CHAIN, find: SYNC_TOPIC, replace: '' }] },
  {
    name: 'the first segment of a topic does not sync the directory',
    edits: [{ file: CHAIN, find: SYNC_TOPIC, replace: `if (baseOffset > 0) ${SYNC_TOPIC}` }],
  },
  {
    name: 'every segment but the first does not sync the directory',
    seenIn,
    edits: [{ file: CHAIN, find: SYNC_TOPIC, replace: `if (baseOffset === 0) ${SYNC_TOPIC}` }],
  },
  {
    name: 'a failed sync of the directory is ignored for a new segment',
    seenIn,
    edits: [{ file: CHAIN, find: SYNC_TOPIC, replace: `await this.fileSystem.syncDirectory(topicDir).catch(() => undefined);` }],
  },
  {
    name: 'the files that an interrupted rotation left are used as they are',
    edits: [{ file: CHAIN, find: REMAKE, replace: '' }],
    insteadOfSweep: {
      spec: 'src/storage/file-topic-log.spec.ts',
      because: 'the simulated disk keeps a journal of names: a failed sync of a directory forgets none',
    },
  },
  {
    name: 'a new segment that takes the place of a left one uses the handles of that one',
    seenIn,
    edits: [{ file: CHAIN, find: '    segment.reopen();\n', replace: '' }],
  },
  {
    name: 'a rotation that finds the files of an interrupted one fails',
    seenIn,
    edits: [{ file: CHAIN, find: "error.errno !== 'EEXIST'", replace: 'true' }],
  },
  {
    name: 'the next segment is begun before the one before it is complete',
    seenIn,
    edits: [
      {
        file: CHAIN,
        find: 'private async rotate(): Promise<Segment> {',
        replace: 'private async rotate(baseOffset = this.count): Promise<Segment> {',
      },
      { file: CHAIN, find: '    const baseOffset = this.count;\n', replace: '' },
      {
        file: CHAIN,
        find: '      await segment.append(payloads.slice(next, end));\n      next = end;',
        replace: `      const appending = segment.append(payloads.slice(next, end));
      appending.catch(() => undefined);
      if (end < payloads.length) await this.rotate(segment.nextOffset + end - next);
      await appending;
      next = end;`,
      },
    ],
  },
  {
    name: 'a segment begins one offset too late',
    seenIn,
    edits: [
      {
        file: CHAIN,
        find: '    const baseOffset = this.count;\n',
        replace: '    const baseOffset = this.count + (this.count > 0 ? 1 : 0);\n',
      },
    ],
  },
];
