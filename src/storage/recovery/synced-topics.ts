import { hash } from 'node:crypto';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoggerService } from '@nestjs/common';
import { CHECKPOINTS_DIRECTORY } from '../checkpoint/index.js';
import { FileError, OpenMode, readFully, writeFully, type File, type FileSystem, type Stamp } from '../file-system/index.js';
import { INDEX_RECORD_BYTES, offsetIndexFileName, segmentFileName, type SegmentExtent } from '../segment/index.js';

/** The leading dot keeps the name out of the alphabet of topics. */
export const SYNCED_FILE_NAME = '.mmmq.synced';

/** Enough for hundreds of thousands of topics; a larger file is none of ours. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;
/** A stamp that settles later than this is left out. */
const MAX_SETTLING_MS = 50;

/** What a start syncs of a topic, in two parts: its two directories, and the two files of its last segment. */
export interface SyncedParts {
  readonly names: boolean;
  readonly log: boolean;
  /** Of the last segment: where nobody has changed it since it was synced, it is whole, and there is nothing behind its end. */
  readonly extent: SegmentExtent;
}

export const NOTHING_SYNCED: SyncedParts = { names: false, log: false, extent: { count: 0, endPosition: 0 } };

/** Where a topic is, and its last segment, where it has one. */
export interface StampedTopic {
  readonly dir: string;
  readonly lastBaseOffset: number | undefined;
}

/** A topic that is synced, and its last segment's extent: none in it where there is no segment. */
export interface RecordedTopic extends StampedTopic {
  readonly extent: SegmentExtent;
}

/** How both parts of a topic stand. */
interface TopicStamp {
  readonly line: string;
  readonly extent: SegmentExtent;
  readonly settlesInMs: number;
}

/**
 * What is known to be on the disk: for each topic how its files and directories stood when all of them were synced, one line of
 * `<topic> <stamps of its directories> <stamps of its last segment>`. Where they stand like this at a start, on the machine that has not been
 * restarted since, nobody has changed them, and there is nothing to sync.
 *
 * A line proves itself, so nothing has to be done to it before its topic is changed, and nothing about the file has to be durable: a line that is
 * old, torn, lost, or came with a copy of the directory fits nothing, and its topic is synced. What a stamp is made of no copy brings along, not
 * even one that is put back in the old place; and every change shows in it, whoever made it: a broker that was killed, a repair, an operator.
 */
export class SyncedTopics {
  private readonly path: string;
  private lines = new Map<string, string>();
  /** Those whose lines were right, word for word, when they were looked at. */
  private readonly proven = new Set<string>();
  private isUnusable = false;

  constructor(
    private readonly fileSystem: FileSystem,
    private readonly logger: LoggerService,
    rootDir: string,
  ) {
    this.path = join(rootDir, SYNCED_FILE_NAME);
  }

  /** Never throws: without it a start takes longer. */
  async read(): Promise<void> {
    try {
      await this.withFile(OpenMode.READING, async (file) => {
        const size = await file.size();
        if (size > MAX_FILE_BYTES) return;
        const text = Buffer.alloc(size);
        this.lines = linesOf(text.toString('latin1', 0, await readFully(file, text, 0)));
      });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      if (!error.isMissing) this.giveUp(error);
    }
  }

  /** Which parts of a topic nobody has changed since they were synced. */
  async provenOf(topic: StampedTopic): Promise<SyncedParts> {
    const line = this.lines.get(basename(topic.dir));
    if (line === undefined) return NOTHING_SYNCED;
    const stamp = await this.stampOf(topic);
    if (stamp === undefined) return NOTHING_SYNCED;
    if (stamp.line === line) this.proven.add(basename(topic.dir));
    const [names, log] = line.split(' ');
    const [namesNow, logNow] = stamp.line.split(' ');
    return { names: names === namesNow, log: log === logNow, extent: stamp.extent };
  }

  /** Whether the topic has a line that was proven. */
  isProven(topic: string): boolean {
    return this.proven.has(topic);
  }

  /**
   * Writes down how topics stand. What the caller says with this: all that can be seen of each of them is on the disk, its last segment is whole up to
   * its extent, and since then nobody but the broker that holds the lock has changed it. Lines of topics that are not among them stay as they are.
   * Never throws.
   * @param all the topics that there are: lines of others go
   */
  async record(synced: readonly RecordedTopic[], all: readonly string[]): Promise<void> {
    if (this.isUnusable) return;
    const lines = new Map(all.flatMap((topic) => (this.lines.has(topic) ? [[topic, this.lines.get(topic) ?? '']] : [])));
    for (const [topic, line] of await this.settledLinesOf(synced)) lines.set(topic, line);
    if (lines.size === this.lines.size && [...lines].every(([topic, line]) => this.lines.get(topic) === line)) return;
    const text = Buffer.from([...lines].map(([topic, line]) => `${topic} ${line}\n`).join(''), 'latin1');
    try {
      await this.withFile(OpenMode.EXISTING_OR_NEW, (file) => this.write(file, text));
      this.lines = lines;
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      this.giveUp(error);
    }
  }

  private async write(file: File, text: Buffer): Promise<void> {
    try {
      await writeFully(file, text, 0);
      await file.truncate(text.length);
    } catch (error) {
      // The room is worth more to others.
      await file.truncate(0);
      throw error;
    }
  }

  /** A stamp tells from a later one only once the clock of the file system has moved on. */
  private async settledLinesOf(topics: readonly RecordedTopic[]): Promise<Map<string, string>> {
    const lines = new Map<string, string>();
    const settling: { readonly topic: RecordedTopic; readonly line: string }[] = [];
    let waitMs = 0;
    for (const topic of topics) {
      const stamp = await this.stampOf(topic);
      if (stamp === undefined || stamp.settlesInMs > MAX_SETTLING_MS || !isSame(stamp.extent, topic.extent)) continue;
      if (stamp.settlesInMs === 0) lines.set(basename(topic.dir), stamp.line);
      else {
        settling.push({ topic, line: stamp.line });
        waitMs = Math.max(waitMs, stamp.settlesInMs);
      }
    }
    // Timers come a little early at times.
    if (waitMs > 0) await sleep(Math.ceil(waitMs) + 2);
    for (const { topic, line } of settling) {
      const stamp = await this.stampOf(topic);
      if (stamp?.settlesInMs === 0 && stamp.line === line) lines.set(basename(topic.dir), line);
    }
    return lines;
  }

  /** @returns undefined where nothing can be told */
  private async stampOf({ dir, lastBaseOffset }: StampedTopic): Promise<TopicStamp | undefined> {
    const paths = [dir, join(dir, CHECKPOINTS_DIRECTORY)];
    if (lastBaseOffset !== undefined)
      paths.push(join(dir, segmentFileName(lastBaseOffset)), join(dir, offsetIndexFileName(lastBaseOffset)));
    const stamps: Stamp[] = [];
    try {
      for (const path of paths) {
        const stamp = await this.fileSystem.stamp(path);
        if (stamp === undefined) return undefined;
        stamps.push(stamp);
      }
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      return undefined;
    }
    const texts = stamps.map(({ text }) => text);
    return {
      line: syncedLine(texts.slice(0, 2), lastBaseOffset, texts.slice(2)),
      extent: { count: (stamps[3]?.size ?? 0) / INDEX_RECORD_BYTES, endPosition: stamps[2]?.size ?? 0 },
      settlesInMs: Math.max(...stamps.map((stamp) => stamp.settlesInMs)),
    };
  }

  private giveUp(error: FileError): void {
    this.isUnusable = true;
    this.logger.warn(`${error.message}: the next start syncs every topic, and takes longer`);
  }

  private async withFile<T>(mode: OpenMode, work: (file: File) => Promise<T>): Promise<T> {
    const file = await this.fileSystem.open(this.path, mode);
    return work(file).finally(() => file.close());
  }
}

function isSame(a: SegmentExtent, b: SegmentExtent): boolean {
  return a.count === b.count && a.endPosition === b.endPosition;
}

function linesOf(text: string): Map<string, string> {
  const lines = new Map<string, string>();
  for (const line of text.split('\n')) {
    const end = line.indexOf(' ');
    if (end > 0) lines.set(line.slice(0, end), line.slice(end + 1));
  }
  return lines;
}

/** What is written down of a topic: the stamps of its two directories, and those of its last segment's two files, as one short text each. */
export function syncedLine(directories: readonly string[], lastBaseOffset: number | undefined, files: readonly string[]): string {
  return `${shortened(directories)} ${shortened([String(lastBaseOffset), ...files])}`;
}

function shortened(texts: readonly string[]): string {
  return hash('sha1', texts.join('\n'), 'base64url');
}
