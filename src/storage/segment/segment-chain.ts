import { join } from 'node:path';
import { PASS_MAX_BYTES, type LogEntry, type ReadLimits } from '../../core/index.js';
import { FileError, OpenMode, type FileSystem } from '../file-system/index.js';
import { entryBytes } from './entry.codec.js';
import { LogUntrustedError } from './log-untrusted.error.js';
import { offsetIndexFileName, segmentFileName } from './segment-name.js';
import { Segment, type SegmentExtent, type SegmentStores } from './segment.js';

export interface SegmentChainOptions {
  readonly topicDir: string;
  /** A segment of this size or more takes no further message. It may pass the limit by its last append. */
  readonly segmentMaxBytes: number;
}

/**
 * A topic's segments in the order of their first offsets, joined without a gap: each begins where the one before it ends. Messages are
 * appended to the last one only, so every other one is complete and never changes.
 */
export class SegmentChain {
  private constructor(
    private readonly fileSystem: FileSystem,
    private readonly stores: SegmentStores,
    private readonly options: SegmentChainOptions,
    private readonly segments: Segment[],
  ) {}

  /** @param found the segments that recovery vouches for, in order */
  static of(
    fileSystem: FileSystem,
    stores: SegmentStores,
    options: SegmentChainOptions,
    found: readonly (SegmentExtent & { readonly baseOffset: number })[],
  ): SegmentChain {
    const segments = found.map((segment) => new Segment(stores, options.topicDir, segment.baseOffset, segment));
    return new SegmentChain(fileSystem, stores, options, segments);
  }

  /** How many messages are durable and visible: the offset that the next one gets. */
  get count(): number {
    return this.last?.nextOffset ?? 0;
  }

  get extents(): readonly (SegmentExtent & { readonly baseOffset: number })[] {
    return this.segments.map(({ baseOffset, count, endPosition }) => ({ baseOffset, count, endPosition }));
  }

  /**
   * Appends in order, rotating before any message that finds the last segment full. Each run of messages that goes to one segment is durable
   * before the next run begins, so that a new segment never holds a message while the old one is unfinished.
   * @throws as {@link Segment.append}; `count` tells how many messages were appended before that
   */
  async append(payloads: readonly Buffer[]): Promise<void> {
    let next = 0;
    while (next < payloads.length) {
      const segment = this.last !== undefined && this.last.endPosition < this.options.segmentMaxBytes ? this.last : await this.rotate();
      const end = this.endOfRun(payloads, next, segment.endPosition);
      await segment.append(payloads.slice(next, end));
      next = end;
    }
  }

  /**
   * 1. select the segment with the largest first offset that is not beyond the one sought; 2. take the difference as the relative offset;
   * 3. read the position that stands there in its offset index; 4. read the entry at that position. Steps 2 to 4 are the segment's.
   */
  async read(offset: number, limits: ReadLimits): Promise<readonly LogEntry[]> {
    if (offset < 0 || offset >= this.count) return [];
    return this.segments[this.indexOfSegment(offset)]?.read(offset, limits) ?? [];
  }

  /** The first offset of the longest tail with at most `maxCount` messages and `maxBytes` bytes of segment files. */
  async tailOffset(maxCount: number, maxBytes: number): Promise<number> {
    const lowest = Math.max(0, this.count - maxCount);
    let bytesLeft = maxBytes;
    for (let index = this.segments.length - 1; index >= 0; index -= 1) {
      const segment = this.segments[index];
      if (segment === undefined || segment.nextOffset <= lowest) return lowest;
      if (segment.endPosition > bytesLeft) {
        const relative = await firstRelativeFrom(segment, segment.endPosition - bytesLeft);
        return Math.max(lowest, segment.baseOffset + relative);
      }
      bytesLeft -= segment.endPosition;
    }
    return lowest;
  }

  /** After an error: fresh handles, and everything beyond the durable part cut away and synced. @throws {FileError} try again later */
  async cutBack(): Promise<void> {
    this.last?.reopen();
    await this.last?.cutBack();
  }

  private get last(): Segment | undefined {
    return this.segments.at(-1);
  }

  private async rotate(): Promise<Segment> {
    const { topicDir } = this.options;
    const baseOffset = this.count;
    const segment = new Segment(this.stores, topicDir, baseOffset, { count: 0, endPosition: 0 });
    segment.reopen();
    await this.makeEmptyFile(join(topicDir, segmentFileName(baseOffset)));
    await this.makeEmptyFile(join(topicDir, offsetIndexFileName(baseOffset)));
    try {
      await this.fileSystem.syncDirectory(topicDir);
    } catch (error) {
      throw new LogUntrustedError(error);
    }
    this.segments.push(segment);
    return segment;
  }

  /** An empty file of that name is what a rotation left that did not come to its end; its name may not be durable, so it is made anew. */
  private async makeEmptyFile(path: string): Promise<void> {
    try {
      await (await this.fileSystem.open(path, OpenMode.NEW)).close();
    } catch (error) {
      if (!(error instanceof FileError) || error.errno !== 'EEXIST') throw error;
      const leftover = await this.fileSystem.open(path, OpenMode.EXISTING);
      const size = await leftover.size().finally(() => leftover.close());
      if (size > 0) throw new LogUntrustedError(new FileError('rotate', path, 'a file that is not empty stands in the way', error));
      await this.fileSystem.remove(path);
      await (await this.fileSystem.open(path, OpenMode.NEW)).close();
    }
  }

  /** Up to which message one write may go: the segment reaches its limit, or the pass its largest size. */
  private endOfRun(payloads: readonly Buffer[], first: number, endPosition: number): number {
    let runBytes = 0;
    let end = first;
    for (; end < payloads.length; end += 1) {
      const payload = payloads[end];
      if (payload === undefined) break;
      const bytes = entryBytes(payload);
      if (end > first && (endPosition + runBytes >= this.options.segmentMaxBytes || runBytes + bytes > PASS_MAX_BYTES)) break;
      runBytes += bytes;
    }
    return end;
  }

  private indexOfSegment(offset: number): number {
    let low = 0;
    let high = this.segments.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.segments[middle]?.baseOffset ?? Number.POSITIVE_INFINITY) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** The first message of the segment that stands at `minPosition` or behind it. */
async function firstRelativeFrom(segment: Segment, minPosition: number): Promise<number> {
  let low = 0;
  let high = segment.count;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((await segment.positionOf(middle)) >= minPosition) high = middle;
    else low = middle + 1;
  }
  return low;
}
