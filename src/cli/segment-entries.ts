import { ENTRY_HEADER_BYTES } from '../core/index.js';
import type { PositionReader } from './position-reader.js';
import type { SegmentWindow } from './segment-window.js';

export interface SegmentEntry {
  /** Within the segment, from 0. */
  readonly record: number;
  readonly position: number;
  /** A view, valid until the next entry is asked for; undefined where the entry cannot be trusted. */
  readonly payload: Buffer | undefined;
  /** Why it cannot be trusted. */
  readonly corruption: string | undefined;
}

/** The messages of a segment that are read. */
export interface EntryRange {
  /** The first record; 0 by default. */
  readonly first?: number;
  /** How many messages the segment has. */
  readonly count: number;
  /**
   * Whether the last message ends where the window does. Where a start refuses, and beside a broker that writes, more may follow it; then it
   * is taken where the one before it ends.
   */
  readonly isEndKnown: boolean;
}

/**
 * Reads the messages of a segment in order and judges each as `Segment.read` does when the broker delivers it: it has a length that can be,
 * fits its checksum, and ends where the next one begins; or, where the next record is the damaged one, it fills the place between its
 * neighbours.
 */
export async function* readEntries(
  window: SegmentWindow,
  positions: PositionReader,
  { first = 0, count, isEndKnown }: EntryRange,
): AsyncGenerator<SegmentEntry, void, undefined> {
  /** NaN for a record that is no position; behind the last one the end of the window. */
  const positionOf = async (record: number): Promise<number> =>
    record < count ? ((await positions.at(record)) ?? Number.NaN) : window.end;
  /** Whether the message behind `record` begins at `position`, whatever its own record says: it ends where the one behind it begins. */
  const isNextAt = async (record: number, position: number): Promise<boolean> => {
    if (!isEndKnown && record + 1 >= count) return true;
    const end = await window.endByLength(position);
    if (!isEndKnown && record + 2 >= count) return end !== undefined;
    return end === (await positionOf(record + 2));
  };

  let previousEnd = first === 0 ? 0 : await window.endByLength(await positionOf(first - 1));
  let position = await positionOf(first);
  for (let record = first; record < count; record += 1) {
    const next = await positionOf(record + 1);
    const end = await window.endByLength(position);
    if (!(position + ENTRY_HEADER_BYTES <= window.end)) {
      yield corrupt(record, position, 'its position in the offset index is beyond the segment');
    } else if (end === undefined) yield corrupt(record, position, 'its length cannot be right');
    else {
      const payload = await window.payload(position, end);
      if (payload === undefined) yield corrupt(record, position, 'its checksum does not fit');
      else if (end === next || (previousEnd === position && (await isNextAt(record, end)))) {
        yield { record, position, payload, corruption: undefined };
      } else yield corrupt(record, position, 'it does not fit between the messages before and behind it');
    }
    previousEnd = end;
    position = next;
  }
}

function corrupt(record: number, position: number, corruption: string): SegmentEntry {
  return { record, position, payload: undefined, corruption };
}
