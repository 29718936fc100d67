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

/**
 * Reads the messages `first` to `count` - 1 of a segment and judges each as the broker does when it delivers: the entry stands where a
 * neighbour says that it does, has a length that can be, and fits its checksum.
 */
export async function* readEntries(
  window: SegmentWindow,
  positions: PositionReader,
  count: number,
  first = 0,
): AsyncGenerator<SegmentEntry, void, undefined> {
  let previousEnd = first === 0 ? 0 : await window.endByLength((await positions.at(first - 1)) ?? Number.NaN);
  let position = (await positions.at(first)) ?? Number.NaN;
  for (let record = first; record < count; record += 1) {
    const next = record + 1 < count ? ((await positions.at(record + 1)) ?? Number.NaN) : window.end;
    const end = await window.endByLength(position);
    if (!(position + ENTRY_HEADER_BYTES <= window.end)) {
      yield corrupt(record, position, 'its position in the offset index is beyond the segment');
    } else if (end === undefined) yield corrupt(record, position, 'its length cannot be right');
    else if (end !== next && previousEnd !== position) {
      yield corrupt(record, position, 'its position in the offset index is not where a message begins');
    } else {
      const payload = await window.payload(position, end);
      if (payload === undefined) yield corrupt(record, position, 'its checksum does not fit');
      else yield { record, position, payload, corruption: undefined };
    }
    previousEnd = end;
    position = next;
  }
}

function corrupt(record: number, position: number, corruption: string): SegmentEntry {
  return { record, position, payload: undefined, corruption };
}
