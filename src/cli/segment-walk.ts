import { ENTRY_HEADER_BYTES } from '../core/index.js';
import { entryBytesAt } from '../storage/index.js';
import type { PositionReader } from './position-reader.js';
import type { SegmentWindow } from './segment-window.js';

/** A message that a walk over the segment file comes to. */
export interface WalkedEntry {
  readonly record: number;
  readonly position: number;
  /** It keeps its offset, and reading skips it. */
  readonly isDamaged: boolean;
}

/** So many damaged messages in a row are stepped over at most: 64 Ki positions in memory. */
const MAX_DAMAGED_RUN = 65_536;
/** So many bytes a search for sound entries checks against their checksums: enough for any real tail, an end for a made-up one. */
const MAX_CHECKED_BYTES = 1024 * 1024 * 1024;
const SEARCH_CHUNK_BYTES = 1024 * 1024;

/**
 * Goes through a segment file entry by entry, by length and checksum, and so finds the positions that its offset index must have. Over a
 * damaged entry it goes only where it stays certain which offsets the following ones have:
 *
 *   1. the entry's own length leads to where the index has the next message, to a sound entry, or, of the last one, into the file;
 *   2. or the index has this message here, and its following positions lead to a sound entry.
 *
 * Otherwise the walk ends in front of it.
 */
export class SegmentWalk {
  /** Behind the last message that was walked over. Whole once {@link entries} came to its end. */
  endPosition = 0;
  count = 0;

  /** @param expectedCount how many messages the segment must have, where another one follows it */
  constructor(
    private readonly window: SegmentWindow,
    private readonly positions: PositionReader,
    private readonly expectedCount: number | undefined,
  ) {}

  async *entries(): AsyncGenerator<WalkedEntry, void, undefined> {
    while (this.endPosition < this.window.end) {
      const end = await this.window.endOfSound(this.endPosition);
      if (end !== undefined) {
        yield this.advance(end, false);
        continue;
      }
      const ends = await this.endsOfDamaged();
      if (ends === undefined) return;
      for (const damagedEnd of ends) yield this.advance(damagedEnd, true);
    }
  }

  private advance(end: number, isDamaged: boolean): WalkedEntry {
    const entry = { record: this.count, position: this.endPosition, isDamaged };
    this.count += 1;
    this.endPosition = end;
    return entry;
  }

  /** Where the damaged entries from here on end, one by one, or undefined where that is not certain. */
  private async endsOfDamaged(): Promise<readonly number[] | undefined> {
    const { window, positions } = this;
    const isHere = (await positions.at(this.count)) === this.endPosition;
    const end = await window.endByLength(this.endPosition);
    if (end !== undefined) {
      const isLastIndexed = this.count + 1 === positions.count;
      if (isHere && (isLastIndexed || (await positions.at(this.count + 1)) === end)) return [end];
      if (end === window.end && this.count + 1 === this.expectedCount) return [end];
      if ((await window.endOfSound(end)) !== undefined) return [end];
    }
    if (!isHere) return undefined;
    const ends: number[] = [];
    let previous = this.endPosition;
    while (ends.length < MAX_DAMAGED_RUN) {
      const next = (await positions.at(this.count + ends.length + 1)) ?? Number.NaN;
      if (!(next > previous + ENTRY_HEADER_BYTES && next < window.end)) return undefined;
      ends.push(next);
      if ((await window.endOfSound(next)) !== undefined) return ends;
      previous = next;
    }
    return undefined;
  }
}

/**
 * Looks for a whole entry with a right checksum anywhere behind `position`: what has one is not cut away.
 * @returns its position, undefined where there is none, or `unknown` where the search would take too long
 */
export async function findSoundEntry(window: SegmentWindow, position: number): Promise<number | 'unknown' | undefined> {
  let checkedBytes = 0;
  for (let start = position; start + ENTRY_HEADER_BYTES < window.end; start += SEARCH_CHUNK_BYTES) {
    // A copy: checking a candidate moves the window.
    const chunk = Buffer.from(await window.bytes(start, SEARCH_CHUNK_BYTES + ENTRY_HEADER_BYTES));
    for (let at = 0; at < SEARCH_CHUNK_BYTES && at + ENTRY_HEADER_BYTES < chunk.length; at += 1) {
      // No length begins with another byte: no entry is larger than 16 MiB.
      if (chunk[at] !== 0) continue;
      const bytes = entryBytesAt(chunk, at);
      if (bytes === undefined || start + at + bytes > window.end) continue;
      checkedBytes += bytes;
      if (checkedBytes > MAX_CHECKED_BYTES) return 'unknown';
      if ((await window.payload(start + at, start + at + bytes)) !== undefined) return start + at;
    }
  }
  return undefined;
}
