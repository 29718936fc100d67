import type { SegmentExtent } from '../segment/index.js';
import type { SyncedParts } from './synced-topics.js';

/** What an inspection found in a topic's directory, and what is to be done about it before the topic can be used. */
export interface TopicFindings {
  /** The segments as they stand once the repairs are done, in order. */
  readonly segments: readonly (SegmentExtent & { readonly baseOffset: number })[];
  /** The first record of the last pass in the last segment's index; as many as it has where none is to be doubted. */
  readonly lastPass: number;
  /** In the order in which they must be done; each is synced before the next. Done again from the start, they end the same way. */
  readonly repairs: readonly Repair[];
  readonly warnings: readonly string[];
  /** The dispatchers that have a checkpoint file here. */
  readonly dispatchers: readonly string[];
  readonly hasCheckpointsDirectory: boolean;
  /** What of it is known to be on the disk. */
  readonly synced: SyncedParts;
}

export type Repair =
  /** Write positions that are missing in an offset index, from the `first`-th record on. */
  | {
      readonly kind: 'fill';
      readonly path: string;
      readonly first: number;
      readonly positions: readonly number[];
      readonly reason: string;
    }
  /** Cut a file to a size; what goes was never acknowledged. */
  | { readonly kind: 'cut'; readonly path: string; readonly size: number; readonly reason: string }
  /** Make the empty twin of an empty file. */
  | { readonly kind: 'make'; readonly path: string; readonly reason: string }
  /** Set a checkpoint that stands beyond the end to the end. */
  | { readonly kind: 'set-checkpoint'; readonly path: string; readonly offset: number; readonly reason: string };
