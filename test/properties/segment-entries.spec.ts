import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PositionReader } from '../../src/cli/position-reader.js';
import { readEntries } from '../../src/cli/segment-entries.js';
import { SegmentWindow } from '../../src/cli/segment-window.js';
import { NodeFileSystem, OffsetIndexStore, OpenFiles, SegmentStore, type SegmentStores } from '../../src/storage/index.js';
import { encodeEntries } from '../../src/storage/segment/entry.codec.js';
import { offsetIndexFileName, segmentFileName } from '../../src/storage/segment/segment-name.js';
import { Segment } from '../../src/storage/segment/segment.js';
import { int64 } from '../support/damaged-directory.js';
import { temporaryDirectories } from '../support/temporary-directory.js';

/** Some have equal lengths, so that one can stand in for another and only its place tells; some are alike to the last byte. */
const PAYLOADS = ['{"m":0}', '{"m":1}', '{"m":"2 is longer"}', '{"m":1}', '{"m":4}', '{"m":"5 is longer"}', '{"m":6}'];
const { bytes: BYTES, positions: POSITIONS } = encodeEntries(
  PAYLOADS.map((payload) => Buffer.from(payload)),
  0,
);
const COUNT = PAYLOADS.length;
const at = (record: number): number => POSITIONS[record] ?? BYTES.length;

/** The files of a segment, as a test spoils them. */
interface Files {
  readonly positions: number[];
  readonly bytes: Buffer;
}

const FITS_NOT = 'it does not fit between the messages before and behind it';
const BEYOND = 'its position in the offset index is beyond the segment';
const LENGTH = 'its length cannot be right';
const CHECKSUM = 'its checksum does not fit';

/** What is done to the files, and the messages that cannot be trusted then, with the reason. */
const DAMAGES: readonly (readonly [what: string, damage: (files: Files) => unknown, corrupt: Readonly<Record<number, string>>])[] = [
  ['nothing', () => undefined, {}],
  ['a record that points at the message before', ({ positions }) => (positions[3] = at(2)), { 3: FITS_NOT }],
  ['a record that points at an equal message', ({ positions }) => (positions[3] = at(1)), { 3: FITS_NOT }],
  ['a record that points at the first message', ({ positions }) => (positions[1] = 0), { 1: FITS_NOT }],
  ['a record that points at the message behind', ({ positions }) => (positions[3] = at(4)), { 3: FITS_NOT }],
  [
    'two records that point at one message',
    ({ positions }) => positions.splice(3, 2, at(1), at(1)),
    { 2: FITS_NOT, 3: FITS_NOT, 4: FITS_NOT },
  ],
  ['two records exchanged', ({ positions }) => positions.splice(3, 2, at(4), at(3)), { 2: FITS_NOT, 3: FITS_NOT, 4: FITS_NOT }],
  ['a record in the middle of a message', ({ positions }) => (positions[3] = at(3) + 1), { 3: LENGTH }],
  ['a record beyond the end', ({ positions }) => (positions[3] = BYTES.length), { 3: BEYOND }],
  ['a record that is negative', ({ positions }) => (positions[3] = -1), { 3: BEYOND }],
  ['a first record that is not 0', ({ positions }) => (positions[0] = at(1)), { 0: FITS_NOT }],
  ['a last record that points at an equal message', ({ positions }) => (positions[6] = at(0)), { 6: FITS_NOT }],
  ['a payload', ({ bytes }) => bytes.fill('#', at(3) + 9, at(3) + 10), { 3: CHECKSUM }],
  ['a length that is too long', ({ bytes }) => bytes.writeInt32BE(10_000, at(3)), { 3: LENGTH }],
  ['a length that is no length', ({ bytes }) => bytes.writeInt32BE(-1, at(3)), { 3: LENGTH }],
  ['zeros over two messages', ({ bytes }) => bytes.fill(0, at(3), at(5)), { 3: LENGTH, 4: LENGTH }],
  ['the bytes of one message over another', ({ bytes }) => BYTES.copy(bytes, at(4), at(0), at(1)), {}],
  [
    'the bytes of a shorter message over another',
    ({ bytes }) => BYTES.copy(bytes, at(2), at(0), at(1)),
    // It ends where no message begins.
    { 2: FITS_NOT },
  ],
  [
    'a length beside a damaged record',
    ({ bytes, positions }) => {
      bytes.writeInt32BE(10_000, at(3));
      positions[4] = at(1);
    },
    { 3: LENGTH, 4: FITS_NOT },
  ],
  [
    'a record between two damaged messages',
    ({ bytes, positions }) => {
      bytes.fill('#', at(2) + 9, at(2) + 10);
      bytes.fill('#', at(4) + 9, at(4) + 10);
      positions[3] = at(1);
    },
    { 2: CHECKSUM, 3: FITS_NOT, 4: CHECKSUM },
  ],
];

const newDirectory = temporaryDirectories();

describe('the messages of a segment', () => {
  let dir: string;
  let files: OpenFiles;
  let stores: SegmentStores;

  beforeEach(async () => {
    dir = await newDirectory();
    files = new OpenFiles(new NodeFileSystem());
    stores = { segments: new SegmentStore(files), offsetIndexes: new OffsetIndexStore(files) };
  });

  afterEach(() => files.closeAll());

  async function damaged(damage: (files: Files) => unknown): Promise<{ segment: string; offsetIndex: string }> {
    const [segment, offsetIndex] = [join(dir, segmentFileName(0)), join(dir, offsetIndexFileName(0))];
    const spoilt = { positions: [...POSITIONS], bytes: Buffer.from(BYTES) };
    damage(spoilt);
    await writeFile(segment, spoilt.bytes);
    await writeFile(offsetIndex, int64(...spoilt.positions));
    return { segment, offsetIndex };
  }

  /** What the offline tools say of each message: its payload, or why it cannot be trusted. */
  async function told({ segment, offsetIndex }: { segment: string; offsetIndex: string }, isEndKnown = true): Promise<string[]> {
    const window = new SegmentWindow(stores, segment, await stores.segments.size(segment));
    const verdicts: string[] = [];
    for await (const entry of readEntries(window, await PositionReader.of(stores, offsetIndex), { count: COUNT, isEndKnown }))
      verdicts.push(entry.corruption ?? String(entry.payload));
    return verdicts;
  }

  /** What the broker says of each, when it reads so many at a time. */
  async function delivered(maxCount: number): Promise<string[]> {
    const segment = new Segment(stores, dir, 0, { count: COUNT, endPosition: BYTES.length });
    const verdicts: string[] = [];
    while (verdicts.length < COUNT) {
      for (const entry of await segment.read(verdicts.length, { maxCount, maxBytes: 1000 }))
        verdicts.push(entry.corruption ?? String(entry.payload));
    }
    return verdicts;
  }

  it.each(DAMAGES)('are judged as the broker does when it delivers them: %s', async (_what, damage, corrupt) => {
    const paths = await damaged(damage);
    const verdicts = await told(paths);
    expect(Object.fromEntries(verdicts.flatMap((verdict, record) => (verdict.startsWith('{') ? [] : [[record, verdict]])))).toEqual(
      corrupt,
    );
    for (const maxCount of [1, COUNT]) expect(await delivered(maxCount)).toEqual(verdicts);
  });

  it('are judged as the broker does wherever one record or two point', async () => {
    const { segment, offsetIndex } = await damaged(() => undefined);
    for (const [record, sound] of POSITIONS.entries()) {
      for (const target of [...POSITIONS, BYTES.length, -1, at(2) + 8]) {
        for (const second of [at(record + 1), at(1), sound]) {
          await writeFile(offsetIndex, int64(...POSITIONS.toSpliced(record, 2, target, second).slice(0, COUNT)));
          expect([record, target, second, await told({ segment, offsetIndex })]).toEqual([record, target, second, await delivered(1)]);
        }
      }
    }
  });

  it('are taken for whole up to the last record where more bytes may follow it', async () => {
    const paths = await damaged(() => undefined);
    await writeFile(paths.segment, Buffer.concat([BYTES, Buffer.from('an append under way')]));
    expect(await told(paths, false)).toEqual(PAYLOADS);
    await writeFile(paths.offsetIndex, int64(...POSITIONS.slice(0, -1), at(1)));
    files.discard(paths.offsetIndex);
    expect(await told(paths, false)).toEqual([...PAYLOADS.slice(0, -1), FITS_NOT]);
  });
});
