import { join } from 'node:path';
import type { CheckpointStore } from '../checkpoint/index.js';
import { CHECKPOINTS_DIRECTORY, parseCheckpointFileName } from '../checkpoint/index.js';
import type { DirectoryEntry, FileSystem } from '../file-system/index.js';
import { offsetIndexFileName, parseSegmentName, segmentFileName, type SegmentExtent, type SegmentStores } from '../segment/index.js';
import { CorruptLogError } from './corrupt-log.error.js';
import { SegmentInspection } from './segment.inspection.js';
import { NOTHING_SYNCED, type SyncedParts, type SyncedTopics } from './synced-topics.js';
import type { Repair, TopicFindings } from './topic-findings.js';

/** Which files of a segment are there. */
interface FoundSegment {
  segment?: DirectoryEntry;
  offsetIndex?: DirectoryEntry;
}

/**
 * Looks at a topic's directory and decides, file by file, what is good, what a crash left and what is corrupt. It changes nothing.
 * @throws {CorruptLogError} at the first finding that no crash explains
 */
export class TopicInspection {
  constructor(
    private readonly fileSystem: FileSystem,
    private readonly stores: SegmentStores,
    private readonly checkpoints: CheckpointStore,
    private readonly topicDir: string,
    /** Where a segment has not changed since it was known to be whole, it is not looked into again. */
    private readonly syncedTopics?: SyncedTopics,
  ) {}

  async inspect(): Promise<TopicFindings> {
    const entries = await this.fileSystem.list(this.topicDir);
    const warnings: string[] = [];
    const found = new Map<number, FoundSegment>();
    for (const entry of entries) {
      const name = parseSegmentName(entry.name);
      if (name === undefined) {
        if (entry.name !== CHECKPOINTS_DIRECTORY || entry.kind !== 'directory') warnings.push(this.leftAlone(this.topicDir, entry.name));
        continue;
      }
      const path = join(this.topicDir, entry.name);
      if (entry.kind !== 'file') throw new CorruptLogError(path, 0, 'a file of a segment is no ordinary file');
      if (!Number.isSafeInteger(name.baseOffset))
        throw new CorruptLogError(path, 0, `the first offset in the name is beyond ${Number.MAX_SAFE_INTEGER}`);
      const segment = found.get(name.baseOffset) ?? {};
      if (name.kind === 'segment') segment.segment = entry;
      else segment.offsetIndex = entry;
      found.set(name.baseOffset, segment);
    }

    const synced = await this.provenOf(found);
    const { segments, lastPass, repairs } = await this.inspectSegments(found, synced);
    const count = segments.reduce((sum, segment) => sum + segment.count, 0);
    const hasCheckpointsDirectory = entries.some((entry) => entry.name === CHECKPOINTS_DIRECTORY && entry.kind === 'directory');
    const checkpoints = hasCheckpointsDirectory ? await this.inspectCheckpoints(count) : { dispatchers: [], repairs: [], warnings: [] };
    return {
      segments,
      lastPass,
      repairs: [...repairs, ...checkpoints.repairs],
      warnings: [...warnings, ...checkpoints.warnings],
      dispatchers: checkpoints.dispatchers,
      hasCheckpointsDirectory,
      synced,
    };
  }

  private async provenOf(found: ReadonlyMap<number, FoundSegment>): Promise<SyncedParts> {
    const lastBaseOffset = found.size === 0 ? undefined : Math.max(...found.keys());
    return (await this.syncedTopics?.provenOf({ dir: this.topicDir, lastBaseOffset })) ?? NOTHING_SYNCED;
  }

  private async inspectSegments(
    found: ReadonlyMap<number, FoundSegment>,
    synced: SyncedParts,
  ): Promise<{ segments: (SegmentExtent & { baseOffset: number })[]; lastPass: number; repairs: Repair[] }> {
    const baseOffsets = [...found.keys()].sort((a, b) => a - b);
    const segments: (SegmentExtent & { baseOffset: number })[] = [];
    const repairs: Repair[] = [];
    let expectedOffset = 0;
    let lastPass = 0;
    for (const [index, baseOffset] of baseOffsets.entries()) {
      const isLast = index === baseOffsets.length - 1;
      const paths = {
        segment: join(this.topicDir, segmentFileName(baseOffset)),
        offsetIndex: join(this.topicDir, offsetIndexFileName(baseOffset)),
      };
      if (baseOffset !== expectedOffset) {
        const at = index === 0 ? 'the first segment of the topic should begin at' : 'the segment before it ends at';
        throw new CorruptLogError(
          paths.segment,
          0,
          `offsets do not join: ${at} offset ${expectedOffset}, this one begins at ${baseOffset}`,
        );
      }
      const files = found.get(baseOffset);
      const inspection = new SegmentInspection(this.stores, paths);
      if (files?.segment === undefined || files.offsetIndex === undefined) {
        repairs.push(await this.makeTwin(paths, files ?? {}, isLast));
        segments.push({ baseOffset, count: 0, endPosition: 0 });
        lastPass = 0;
        continue;
      }
      const unchanged = { extent: synced.extent, lastPass: synced.extent.count, repairs: [] };
      const findings = !isLast ? await inspection.inspectOlder() : synced.log ? unchanged : await inspection.inspectLast();
      segments.push({ baseOffset, ...findings.extent });
      repairs.push(...findings.repairs);
      expectedOffset = baseOffset + findings.extent.count;
      lastPass = findings.lastPass;
    }
    return { segments, lastPass, repairs };
  }

  /** One file of a pair: a rotation that a crash ended left it empty, and then it is the last. */
  private async makeTwin(paths: { segment: string; offsetIndex: string }, files: FoundSegment, isLast: boolean): Promise<Repair> {
    const present = files.segment === undefined ? paths.offsetIndex : paths.segment;
    const missing = files.segment === undefined ? paths.segment : paths.offsetIndex;
    const size = await this.stores.segments.size(present);
    if (size > 0 || !isLast) throw new CorruptLogError(present, 0, `its twin ${missing} is missing`);
    return { kind: 'make', path: missing, reason: 'a new segment was begun and not finished' };
  }

  private async inspectCheckpoints(count: number): Promise<{ dispatchers: string[]; repairs: Repair[]; warnings: string[] }> {
    const directory = join(this.topicDir, CHECKPOINTS_DIRECTORY);
    const dispatchers: string[] = [];
    const repairs: Repair[] = [];
    const warnings: string[] = [];
    for (const entry of await this.fileSystem.list(directory)) {
      const dispatcher = parseCheckpointFileName(entry.name);
      if (dispatcher === undefined || entry.kind !== 'file') {
        warnings.push(this.leftAlone(directory, entry.name));
        continue;
      }
      dispatchers.push(dispatcher);
      const path = join(directory, entry.name);
      const offset = await this.checkpoints.read(path);
      if (offset !== undefined && offset > count) {
        const reason = `it says ${offset}, but the topic ends at ${count}`;
        repairs.push({ kind: 'set-checkpoint', path, offset: count, reason });
      }
    }
    return { dispatchers, repairs, warnings };
  }

  private leftAlone(directory: string, name: string): string {
    return `${join(directory, name)} is none of the broker's files and is left alone`;
  }
}
