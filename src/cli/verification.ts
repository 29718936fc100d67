import { CorruptLogError, FileError, TopicInspection } from '../storage/index.js';
import type { DataDirectory } from './data-directory.js';
import type { Obstacle } from './obstacle.js';
import { PositionReader } from './position-reader.js';
import { readEntries } from './segment-entries.js';
import { judgeSegment, type SegmentJudgement } from './segment-judgement.js';
import { SegmentWindow } from './segment-window.js';
import type { Progress } from './terminal.js';
import { findTopicFiles, type SegmentPair, type TopicFiles } from './topic-files.js';

/** So many corrupt entries of a topic are listed; the others are counted. */
export const MAX_LISTED_ENTRIES = 1000;

export interface CorruptEntry {
  readonly offset: number;
  readonly file: string;
  readonly position: number;
  readonly reason: string;
}

/** Why a start would be refused. */
export interface Refusal {
  readonly file: string;
  readonly position: number;
  readonly reason: string;
}

/** What an interrupted append or rotation left behind; the next start puts it right by itself. */
export interface Remnant {
  readonly file: string;
  readonly reason: string;
}

export interface CheckpointOffset {
  readonly dispatcher: string;
  /** The next offset to read; nothing where the file does not hold one. */
  readonly offset: number | undefined;
}

export interface CheckpointReport extends CheckpointOffset {
  readonly problem?: 'unreadable' | 'beyond the end';
}

export interface TopicReport {
  readonly topic: string;
  readonly segments: number;
  /** As many as the offset indexes name; the corrupt ones are among them. */
  readonly messages: number;
  /** Of the segment files. */
  readonly bytes: number;
  readonly corruptMessages: number;
  /** The first of them. */
  readonly corrupt: readonly CorruptEntry[];
  readonly refusals: readonly Refusal[];
  readonly remnants: readonly Remnant[];
  readonly checkpoints: readonly CheckpointReport[];
  /** What keeps dispatchers from delivering the topic. */
  readonly obstacles: readonly Obstacle[];
  /** Paths of what a repair left that was interrupted; a start leaves it alone, the next repair does not. */
  readonly unfinishedRepairs: readonly string[];
  /** Paths of what is none of the broker's. */
  readonly leftovers: readonly string[];
  /** Where the disk did not let the topic be read to its end. */
  readonly unreadable?: string;
}

export interface VerificationReport {
  readonly rootDir: string;
  /** Read beside a broker: what stands at the end of each topic was not judged. */
  readonly live: boolean;
  readonly topics: readonly TopicReport[];
  /** What is in the place of files of the data directory itself. */
  readonly obstacles: readonly Obstacle[];
  readonly leftovers: readonly string[];
}

export interface VerificationOptions {
  readonly live: boolean;
  readonly topics?: readonly string[];
  readonly progress: Progress;
}

/** Reads the whole of a data directory. It holds one topic's list of files, one window of a segment and one chunk of an index at a time. */
export async function verify(directory: DataDirectory, options: VerificationOptions): Promise<VerificationReport> {
  const { topics, obstacles, leftovers } = await directory.list();
  const chosen = options.topics ?? topics;
  options.progress.begin(await totalBytes(directory, chosen));
  try {
    const reports: TopicReport[] = [];
    for (const topic of chosen) {
      const verification = new TopicVerification(directory, options);
      const report = await verification.report(topic);
      if (report === undefined) continue;
      if ('paths' in report) leftovers.push(...report.paths);
      else reports.push(report);
    }
    const { rootDir } = directory;
    const ofAll = options.topics === undefined ? { obstacles, leftovers } : { obstacles: [], leftovers: [] };
    return { rootDir, live: options.live, topics: reports, ...ofAll };
  } finally {
    options.progress.end();
  }
}

export function hasFindings(report: VerificationReport): boolean {
  return report.obstacles.length > 0 || report.leftovers.length > 0 || report.topics.some(hasTopicFindings);
}

function hasTopicFindings(topic: TopicReport): boolean {
  return (
    topic.corruptMessages > 0 ||
    topic.refusals.length > 0 ||
    topic.remnants.length > 0 ||
    topic.obstacles.length > 0 ||
    topic.unfinishedRepairs.length > 0 ||
    topic.leftovers.length > 0 ||
    topic.checkpoints.some(({ problem }) => problem !== undefined)
  );
}

async function totalBytes({ fileSystem, rootDir, stores }: DataDirectory, topics: readonly string[]): Promise<number> {
  let bytes = 0;
  for (const topic of topics) {
    try {
      const { pairs } = await findTopicFiles(fileSystem, rootDir, topic);
      for (const pair of pairs) if (pair.hasSegment) bytes += await stores.segments.size(pair.segment);
    } catch (error) {
      // It is only for the progress; the verification will say it.
      if (!(error instanceof FileError)) throw error;
    }
  }
  return bytes;
}

/** One topic, once. */
class TopicVerification {
  private messages = 0;
  private bytes = 0;
  private corruptMessages = 0;
  private readonly corrupt: CorruptEntry[] = [];
  private readonly refusals: Refusal[] = [];
  private readonly remnants: Remnant[] = [];
  private checkpoints: CheckpointReport[] = [];
  private files: TopicFiles | undefined;

  constructor(
    private readonly directory: DataDirectory,
    private readonly options: VerificationOptions,
  ) {}

  /** @returns the paths of what is in it where the directory is no topic, undefined where it is empty */
  async report(topic: string): Promise<TopicReport | { readonly paths: readonly string[] } | undefined> {
    let unreadable: string | undefined;
    try {
      this.files = await this.findFiles(topic);
      if (!this.files.isTopic) return this.files.leftovers.length > 0 ? { paths: this.files.leftovers } : undefined;
      const checkpoints = await this.readCheckpoints(this.files);
      // Beside a broker checkpoints move, and never beyond the segments that are there by then.
      if (this.options.live) this.files = await this.findFiles(topic);
      await this.verify(this.files, checkpoints);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      unreadable = error.message;
    }
    return {
      topic,
      segments: this.files?.pairs.length ?? 0,
      messages: this.messages,
      bytes: this.bytes,
      corruptMessages: this.corruptMessages,
      corrupt: this.corrupt,
      refusals: this.refusals,
      remnants: this.remnants,
      checkpoints: this.checkpoints,
      obstacles: this.files?.obstacles ?? [],
      unfinishedRepairs: this.files?.unfinishedRepairs ?? [],
      leftovers: this.files?.leftovers ?? [],
      ...(unreadable === undefined ? {} : { unreadable }),
    };
  }

  private findFiles(topic: string): Promise<TopicFiles> {
    return findTopicFiles(this.directory.fileSystem, this.directory.rootDir, topic);
  }

  private async verify(files: TopicFiles, checkpoints: readonly CheckpointOffset[]): Promise<void> {
    for (const misfit of files.misfits) this.refuse(misfit);
    let expectedOffset: number | undefined = 0;
    for (const [index, pair] of files.pairs.entries()) {
      if (expectedOffset !== undefined && pair.baseOffset !== expectedOffset) {
        const at = index === 0 ? 'the first segment of the topic should begin at' : 'the segment before it ends at';
        const reason = `offsets do not join: ${at} offset ${expectedOffset}, this one begins at ${pair.baseOffset}`;
        this.refuse(new CorruptLogError(pair.segment, 0, reason));
      }
      expectedOffset = await this.verifyPair(pair, index === files.pairs.length - 1);
    }
    if (!this.options.live) await this.askTheStart(files);
    // Where the last segment is not to be trusted, nobody knows the end.
    const end = expectedOffset ?? Number.POSITIVE_INFINITY;
    this.checkpoints = checkpoints.map(({ dispatcher, offset }) => {
      if (offset === undefined) return { dispatcher, offset, problem: 'unreadable' };
      return offset > end ? { dispatcher, offset, problem: 'beyond the end' } : { dispatcher, offset };
    });
  }

  /** @returns the offset behind the segment, or undefined where it is not known */
  private async verifyPair(pair: SegmentPair, isLast: boolean): Promise<number | undefined> {
    const isLiveTail = this.options.live && isLast;
    if (!pair.hasSegment || !pair.hasOffsetIndex) {
      const size = pair.hasSegment ? await this.segmentSize(pair) : 0;
      this.bytes += size;
      // A rotation is under way.
      if (isLiveTail) return pair.baseOffset;
      const [present, missing] = pair.hasSegment ? [pair.segment, pair.offsetIndex] : [pair.offsetIndex, pair.segment];
      const isEmpty = (await this.directory.stores.segments.size(present)) === 0;
      if (isLast && isEmpty) this.remnants.push({ file: missing, reason: 'a new segment was begun and not finished' });
      else this.refuse(new CorruptLogError(present, 0, `its twin ${missing} is missing`));
      return isEmpty ? pair.baseOffset : undefined;
    }
    const judgement = isLiveTail ? await this.judgeLive(pair) : await judgeSegment(this.directory.stores, pair, isLast);
    if (judgement.refusal !== undefined) this.refuse(judgement.refusal);
    for (const { path, reason } of judgement.repairs) this.remnants.push({ file: path, reason });
    this.bytes += await this.segmentSize(pair);
    await this.readMessages(pair, isLiveTail, judgement);
    return judgement.refusal === undefined ? pair.baseOffset + judgement.extent.count : undefined;
  }

  /** What the index names now was synced to the segment before; what comes behind it is not looked at. */
  private async judgeLive(pair: SegmentPair): Promise<SegmentJudgement> {
    const { stores } = this.directory;
    const positions = await PositionReader.of(stores, pair.offsetIndex);
    const endPosition = await this.segmentSize(pair);
    return { extent: { count: positions.count, endPosition }, positions, isEndKnown: false, repairs: [], refusal: undefined };
  }

  private async readMessages(pair: SegmentPair, isLiveTail: boolean, judgement: SegmentJudgement): Promise<void> {
    const { extent, positions, isEndKnown } = judgement;
    const window = new SegmentWindow(this.directory.stores, pair.segment, extent.endPosition);
    this.messages += extent.count;
    let progressed = 0;
    for await (const entry of readEntries(window, positions, { count: extent.count, isEndKnown })) {
      if (entry.position > progressed) {
        this.options.progress.add(entry.position - progressed);
        progressed = entry.position;
      }
      if (entry.corruption !== undefined && !(isLiveTail && (await this.isPassingState(pair, entry.record)))) {
        this.corruptMessages += 1;
        if (this.corrupt.length < MAX_LISTED_ENTRIES) {
          this.corrupt.push({
            offset: pair.baseOffset + entry.record,
            file: pair.segment,
            position: entry.position,
            reason: entry.corruption,
          });
        }
      }
    }
  }

  /** Beside a broker an append may have been taken back, and another written in its place, while we read: look again, with nothing kept. */
  private async isPassingState(pair: SegmentPair, record: number): Promise<boolean> {
    const { extent, positions, isEndKnown } = await this.judgeLive(pair);
    if (record >= extent.count) return true;
    const window = new SegmentWindow(this.directory.stores, pair.segment, extent.endPosition);
    const range = { first: record, count: extent.count, isEndKnown };
    for await (const entry of readEntries(window, positions, range)) return entry.corruption === undefined;
    return true;
  }

  /** The start itself has the last word: what it would refuse is a finding, whatever was found above. */
  private async askTheStart({ dir }: TopicFiles): Promise<void> {
    const { fileSystem, stores, checkpoints } = this.directory;
    try {
      await new TopicInspection(fileSystem, stores, checkpoints, dir).inspect();
    } catch (error) {
      if (!(error instanceof CorruptLogError)) throw error;
      this.refuse(error);
    }
  }

  private refuse({ file, position, reason }: CorruptLogError): void {
    const isKnown = this.refusals.some((known) => known.file === file && known.position === position && known.reason === reason);
    if (!isKnown) this.refusals.push({ file, position, reason });
  }

  private async readCheckpoints(files: TopicFiles): Promise<CheckpointOffset[]> {
    const read: CheckpointOffset[] = [];
    for (const { dispatcher, path } of files.checkpoints) {
      // Beside a broker one that has no bytes yet is just being made.
      if (this.options.live && (await this.directory.checkpoints.size(path)) === 0) continue;
      read.push({ dispatcher, offset: await this.directory.checkpoints.read(path) });
    }
    return read;
  }

  private segmentSize(pair: SegmentPair): Promise<number> {
    return this.directory.stores.segments.size(pair.segment);
  }
}
