import { CorruptLogError, SegmentInspection, type Repair, type SegmentExtent, type SegmentStores } from '../storage/index.js';
import { PositionReader } from './position-reader.js';
import type { SegmentPair } from './topic-files.js';

/** What a start makes of a segment, and how its messages can be read in any case. */
export interface SegmentJudgement {
  /** What a start serves; where it refuses, all that the files name. */
  readonly extent: SegmentExtent;
  readonly positions: PositionReader;
  /** Whether the last message is known to end where the extent does. */
  readonly isEndKnown: boolean;
  /** What a start puts right by itself. */
  readonly repairs: readonly Repair[];
  /** Why a start refuses. */
  readonly refusal: CorruptLogError | undefined;
}

/** @param pair with both of its files */
export async function judgeSegment(stores: SegmentStores, pair: SegmentPair, isLast: boolean): Promise<SegmentJudgement> {
  const inspection = new SegmentInspection(stores, { segment: pair.segment, offsetIndex: pair.offsetIndex });
  try {
    const { extent, repairs } = isLast ? await inspection.inspectLast() : await inspection.inspectOlder();
    const positions = await PositionReader.of(stores, pair.offsetIndex, filledPositions(repairs));
    return { extent, positions, isEndKnown: true, repairs, refusal: undefined };
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    const positions = await PositionReader.of(stores, pair.offsetIndex);
    const extent = { count: await positions.countWithoutZeroTail(), endPosition: await stores.segments.size(pair.segment) };
    return { extent, positions, isEndKnown: false, repairs: [], refusal: error };
  }
}

/** The positions that the start writes itself, by record. */
function filledPositions(repairs: readonly Repair[]): ReadonlyMap<number, number> {
  const filled = new Map<number, number>();
  for (const repair of repairs) {
    if (repair.kind === 'fill') repair.positions.forEach((position, index) => filled.set(repair.first + index, position));
  }
  return filled;
}
