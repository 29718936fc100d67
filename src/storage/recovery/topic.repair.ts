import type { CheckpointStore } from '../checkpoint/index.js';
import { OpenMode, type FileSystem } from '../file-system/index.js';
import type { SegmentStores } from '../segment/index.js';
import type { Repair } from './topic-findings.js';

/**
 * Does what an inspection decided, one repair after the other, the bytes of each on the disk before the next; names become durable with the
 * directory, which the caller syncs at the end. Interrupted anywhere it is simply run again: what is left is found by the next inspection.
 */
export class TopicRepair {
  constructor(
    private readonly fileSystem: FileSystem,
    private readonly stores: SegmentStores,
    private readonly checkpoints: CheckpointStore,
  ) {}

  async apply(repair: Repair): Promise<void> {
    switch (repair.kind) {
      case 'fill':
        await this.stores.offsetIndexes.keepOpen(repair.path, async () => {
          await this.stores.offsetIndexes.write(repair.path, repair.positions, repair.first);
          await this.stores.offsetIndexes.sync(repair.path);
        });
        return;
      case 'cut':
        await this.stores.segments.keepOpen(repair.path, async () => {
          await this.stores.segments.truncate(repair.path, repair.size);
          await this.stores.segments.sync(repair.path);
        });
        return;
      case 'make':
        await (await this.fileSystem.open(repair.path, OpenMode.EXISTING_OR_NEW)).close();
        return;
      case 'set-checkpoint':
        await this.checkpoints.write(repair.path, repair.offset);
        return;
    }
  }
}
