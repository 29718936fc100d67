import { join } from 'node:path';
import { CHECKPOINTS_DIRECTORY } from '../checkpoint/index.js';
import { FileError, type FileSystem } from '../file-system/index.js';
import { offsetIndexFileName, segmentFileName, type SegmentExtent, type SegmentStores } from '../segment/index.js';
import type { SyncedParts } from './synced-topics.js';

/** So many records of an index are written at a time: 64 KiB. */
const RECORDS_PER_WRITE = 8192;

/** What a start shows of a topic, and where. */
export interface TopicToSync {
  readonly dir: string;
  readonly last: (SegmentExtent & { readonly baseOffset: number }) | undefined;
  /** The first record of the last segment's last pass. */
  readonly lastPass: number;
  readonly hasCheckpointsDirectory: boolean;
}

/**
 * Brings to the disk all that a start relies on: a process that was killed leaves bytes and names that can be read and are not there yet.
 *
 * The positions of the last pass are written again first. Where the sync of an append failed, the kernel has forgotten what it could not write and
 * still shows it to whoever reads; the process that saw the failure may be gone, and a sync that follows succeeds without writing anything.
 * Written again, they are there when the sync returns. The entries that they point at were synced before any position was written.
 */
export class TopicSync {
  constructor(
    private readonly fileSystem: FileSystem,
    private readonly stores: SegmentStores,
  ) {}

  /**
   * @param synced what is known to be on the disk already
   * @returns whether all of it is there now. It may be not where the disk is full: then it must be brought there by another start
   */
  async sync({ dir, last, lastPass, hasCheckpointsDirectory }: TopicToSync, synced: SyncedParts): Promise<boolean> {
    const { segments, offsetIndexes } = this.stores;
    let isWrittenAgain = true;
    if (last !== undefined && !synced.log) {
      await segments.sync(join(dir, segmentFileName(last.baseOffset)));
      const offsetIndex = join(dir, offsetIndexFileName(last.baseOffset));
      await offsetIndexes.keepOpen(offsetIndex, async () => {
        isWrittenAgain = await this.writeAgain(offsetIndex, lastPass, last);
        await offsetIndexes.sync(offsetIndex);
      });
    }
    if (synced.names) return isWrittenAgain;
    if (hasCheckpointsDirectory) await this.fileSystem.syncDirectory(join(dir, CHECKPOINTS_DIRECTORY));
    await this.fileSystem.syncDirectory(dir);
    return isWrittenAgain;
  }

  /** @returns false where there was no room */
  private async writeAgain(offsetIndex: string, lastPass: number, { count, endPosition }: SegmentExtent): Promise<boolean> {
    let previous = -1;
    for (let first = lastPass; first < count; first += RECORDS_PER_WRITE) {
      const positions = await this.stores.offsetIndexes.read(offsetIndex, first, Math.min(RECORDS_PER_WRITE, count - first));
      for (const position of positions) {
        if (!(position > previous && position < endPosition)) throw new FileError('read again', offsetIndex, 'other bytes than before');
        previous = position;
      }
      if (first + positions.length < Math.min(first + RECORDS_PER_WRITE, count))
        throw new FileError('read again', offsetIndex, 'fewer bytes than before');
      try {
        await this.stores.offsetIndexes.write(offsetIndex, positions, first);
      } catch (error) {
        // Where nothing is overwritten in place this needs room. A full disk keeps nobody from reading.
        if (!(error instanceof FileError) || !error.isDiskFull) throw error;
        return false;
      }
    }
    return true;
  }
}
