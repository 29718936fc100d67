import { ENTRY_HEADER_BYTES, PASS_MAX_BYTES, shellWord } from '../core/index.js';
import { CorruptLogError, INDEX_RECORD_BYTES, TopicInspection } from '../storage/index.js';
import type { DataDirectory } from './data-directory.js';
import { moveAwayCommand } from './obstacle.js';
import { PositionReader } from './position-reader.js';
import { judgeSegment } from './segment-judgement.js';
import { findSoundEntry, SegmentWalk } from './segment-walk.js';
import { SegmentWindow } from './segment-window.js';
import { findTopicFiles, REBUILT_SUFFIX, type SegmentPair, type TopicFiles } from './topic-files.js';

/** One change to one file. */
export type RepairStep =
  /** Write the offset index anew from its segment. */
  | {
      readonly kind: 'rebuild-index';
      readonly path: string;
      readonly pair: SegmentPair;
      readonly expectedCount: number | undefined;
      readonly reason: string;
    }
  | { readonly kind: 'cut'; readonly path: string; readonly size: number; readonly reason: string }
  /** Make an empty file. */
  | { readonly kind: 'make'; readonly path: string; readonly reason: string }
  | { readonly kind: 'remove'; readonly path: string; readonly reason: string }
  | { readonly kind: 'set-checkpoint'; readonly path: string; readonly offset: number; readonly reason: string };

/** What no tool can mend without losing what is there, and what the operator can do about it. */
export interface Remaining {
  readonly reason: string;
  readonly remedy: string;
}

/** Offsets that an offset index names and no message in the segment file has. */
export interface Loss {
  /** Whether the index proves that there were messages; otherwise it may be the index alone that is damaged. */
  readonly isCertain: boolean;
  readonly what: string;
}

export interface TopicPlan {
  readonly topic: string;
  /** In the order in which they must be done. None where something remains: a topic is mended as a whole, or left as it is. */
  readonly steps: readonly RepairStep[];
  /** Messages whose bytes are not there any more, whatever is done. */
  readonly losses: readonly Loss[];
  readonly remaining: readonly Remaining[];
}

interface PairPlan {
  readonly steps: readonly RepairStep[];
  readonly losses?: readonly Loss[];
  readonly remaining?: Remaining;
  /** How many messages the segment has once the steps are done. */
  readonly count: number;
}

/** What is to be done so that a start succeeds on the topic. It reads, and changes nothing. */
export async function planRepair(directory: DataDirectory, topic: string): Promise<TopicPlan> {
  const files = await findTopicFiles(directory.fileSystem, directory.rootDir, topic);
  return new TopicPlanner(directory, files).plan();
}

class TopicPlanner {
  constructor(
    private readonly directory: DataDirectory,
    private readonly files: TopicFiles,
  ) {}

  async plan(): Promise<TopicPlan> {
    const { topic, pairs, misfits, obstacles } = this.files;
    const remaining: Remaining[] = misfits.map(({ file, reason }) => ({
      reason: `${file}: ${reason}`,
      remedy: `look at what it is, and move it away: ${this.moveAway(file)}`,
    }));
    const steps: RepairStep[] = [];
    const losses: Loss[] = [];
    let end = 0;
    // What is in the place of a file that is missing comes first.
    for (const [index, pair] of misfits.length > 0 ? [] : pairs.entries()) {
      if (pair.baseOffset !== end) {
        remaining.push(this.gap(end, pair.baseOffset));
        end = pair.baseOffset;
      }
      const next = pairs[index + 1];
      const plan = await this.planPair(pair, next === undefined ? undefined : next.baseOffset - pair.baseOffset);
      steps.push(...plan.steps);
      losses.push(...(plan.losses ?? []));
      if (plan.remaining !== undefined) remaining.push(plan.remaining);
      end = plan.remaining !== undefined && next !== undefined ? next.baseOffset : pair.baseOffset + plan.count;
    }
    // They keep nobody from mending the rest.
    const inTheWay = obstacles.map(({ path, reason, remedy }) => ({ reason: `${path}: ${reason}`, remedy }));
    if (remaining.length > 0) return { topic, steps: [], losses, remaining: [...remaining, ...inTheWay] };
    steps.push(...(await this.planCheckpoints(end)));
    // Whatever is not understood here is not called well.
    const refusal = steps.length === 0 ? await this.refusalOfStart() : undefined;
    if (refusal !== undefined) return { topic, steps, losses, remaining: [this.noRemedy(refusal.message), ...inTheWay] };
    return { topic, steps: [...steps, ...this.planRemovals(steps)], losses, remaining: inTheWay };
  }

  private async planPair(pair: SegmentPair, expectedCount: number | undefined): Promise<PairPlan> {
    const { stores } = this.directory;
    const judgement = pair.hasSegment && pair.hasOffsetIndex ? await judgeSegment(stores, pair, expectedCount === undefined) : undefined;
    if (judgement !== undefined && judgement.refusal === undefined && judgement.repairs.length === 0) {
      const { count } = judgement.extent;
      if (expectedCount === undefined || count === expectedCount) return { steps: [], count };
    }

    const size = pair.hasSegment ? await stores.segments.size(pair.segment) : 0;
    const positions = pair.hasOffsetIndex
      ? await PositionReader.of(stores, pair.offsetIndex)
      : PositionReader.empty(stores, pair.offsetIndex);
    const window = new SegmentWindow(stores, pair.segment, size);
    const walk = new SegmentWalk(window, positions, expectedCount);
    let isPrefix = true;
    let brokenFrom: number | undefined;
    for await (const { record, position, isDamaged } of walk.entries()) {
      if ((await positions.at(record)) !== position) isPrefix = false;
      if (isDamaged && (await window.endByLength(position)) === undefined) brokenFrom = position;
    }

    const problem = await this.problemOfWalk(pair, walk, window, expectedCount);
    if (problem !== undefined) return { steps: [], count: walk.count, remaining: problem };

    const steps: RepairStep[] = [];
    const indexSize = pair.hasOffsetIndex ? await stores.offsetIndexes.size(pair.offsetIndex) : 0;
    const newIndexSize = walk.count * INDEX_RECORD_BYTES;
    const path = pair.offsetIndex;
    // The index before the segment: it must never name what the segment does not have.
    if (!isPrefix || indexSize < newIndexSize) {
      const reason = `it is written anew from the segment file, with the positions of ${messages(walk.count)}`;
      steps.push({ kind: 'rebuild-index', path, pair, expectedCount, reason });
    } else if (indexSize > newIndexSize) {
      steps.push({
        kind: 'cut',
        path,
        size: newIndexSize,
        reason: `${indexSize - newIndexSize} bytes at the end are no positions of messages that are there`,
      });
    } else if (!pair.hasOffsetIndex) steps.push({ kind: 'make', path, reason: 'it is missing, and its segment file is empty' });
    if (!pair.hasSegment) steps.push({ kind: 'make', path: pair.segment, reason: 'it is missing' });
    if (size > walk.endPosition) {
      const reason = `${size - walk.endPosition} bytes at the end are no whole message`;
      steps.push({ kind: 'cut', path: pair.segment, size: walk.endPosition, reason });
    }
    if (steps.length === 0) {
      const what = `${pair.segment}: messages in a row have lengths that cannot be right${brokenFrom === undefined ? '' : `, up to byte ${brokenFrom}`}`;
      return { steps, count: walk.count, remaining: this.noRemedy(what) };
    }
    // What an append that was never acknowledged left is no loss.
    const isRefused = judgement === undefined || judgement.refusal !== undefined;
    // Nor is anything lost of a segment that has all that the next one leaves it.
    const losses = isRefused && expectedCount === undefined ? await this.losses(pair, positions, walk, size) : [];
    return { steps, count: walk.count, losses };
  }

  private async problemOfWalk(
    pair: SegmentPair,
    walk: SegmentWalk,
    window: SegmentWindow,
    expectedCount: number | undefined,
  ): Promise<Remaining | undefined> {
    const sound = await findSoundEntry(window, walk.endPosition);
    if (sound !== undefined) {
      const where = sound === 'unknown' ? 'there may be sound messages behind it' : `a sound message stands behind it, at byte ${sound}`;
      return {
        reason: `${pair.segment}, byte ${walk.endPosition}: a message is damaged, ${where}, and nothing says which offset it has`,
        remedy:
          `restore ${pair.offsetIndex} from a copy and run this again; or give up all from there on: ` +
          `truncate -s ${walk.endPosition} ${shellWord(pair.segment)}, keep a copy, and run this again`,
      };
    }
    if (expectedCount === undefined || walk.count === expectedCount) return undefined;
    if (walk.count < expectedCount) return this.gap(pair.baseOffset + walk.count, pair.baseOffset + expectedCount);
    return {
      reason: `${pair.segment} has ${messages(walk.count)}, but the next segment begins after ${expectedCount}`,
      remedy: `restore the files of this topic from a copy, or ${this.startWithout()}`,
    };
  }

  /**
   * What the records of the index behind the last message say. Only they can tell that a message was acknowledged whose bytes are gone:
   *
   *   - they lead on from the end of the last message, each behind the one before it, as appends wrote them: there were messages;
   *   - a position elsewhere behind that end, eight zeros, which a disk shows in place of what it never got, or any record over bytes that
   *     are no whole message: nobody can tell;
   *   - no position, or one of what is there, where the segment ends with a whole message: the record alone is damaged.
   */
  private async losses(pair: SegmentPair, positions: PositionReader, walk: SegmentWalk, segmentSize: number): Promise<Loss[]> {
    const { count, endPosition } = walk;
    const named = await positions.countWithoutZeroTail();
    let provenEnd = count;
    let namedEnd = count;
    let previous: number | undefined;
    for (let record = count; record < named; record += 1) {
      const position = (await positions.at(record)) ?? Number.NaN;
      const leadsOn =
        previous === undefined
          ? position === endPosition
          : position > previous + ENTRY_HEADER_BYTES && position <= previous + PASS_MAX_BYTES;
      if (leadsOn && provenEnd === record) {
        provenEnd = record + 1;
        previous = position;
      }
      if (position >= endPosition || segmentSize > endPosition) namedEnd = record + 1;
    }
    if (previous === 0) provenEnd = count;
    const losses: Loss[] = [];
    if (provenEnd > count) losses.push(this.loss(pair, count, provenEnd));
    if (namedEnd > provenEnd) losses.push(this.possibleLoss(pair, provenEnd, namedEnd));
    return losses;
  }

  private loss(pair: SegmentPair, from: number, to: number): Loss {
    const what =
      `${this.offsets(pair, from, to)}: the offset index names ${messages(to - from)} whose bytes are not in the segment file. ` +
      `New messages will get these offsets again. If there is a copy of ${pair.segment}, restore that instead`;
    return { isCertain: true, what };
  }

  private possibleLoss(pair: SegmentPair, from: number, to: number): Loss {
    const what =
      `${this.offsets(pair, from, to)}: what the offset index has behind the last whole message of the segment file proves no message, ` +
      'and nobody can tell whether there was one. New messages will get these offsets, in that case again. ' +
      `If there is a copy of ${pair.segment}, see whether it has more, and restore that instead`;
    return { isCertain: false, what };
  }

  /** The offsets of records of the segment, from the first one to the one before `to`. */
  private offsets(pair: SegmentPair, from: number, to: number): string {
    const [first, last] = [pair.baseOffset + from, pair.baseOffset + to - 1];
    return `${first === last ? `offset ${first}` : `offsets ${first} to ${last}`} of ${this.files.topic}`;
  }

  /** An index that an interrupted repair left half-written, or whole without its name: it is begun anew with its index, or not needed. */
  private planRemovals(steps: readonly RepairStep[]): RepairStep[] {
    return this.files.unfinishedRepairs
      .filter((path) => !steps.some((step) => step.kind === 'rebuild-index' && path === `${step.path}${REBUILT_SUFFIX}`))
      .map((path) => ({ kind: 'remove', path, reason: 'a repair that was interrupted left it' }));
  }

  private async planCheckpoints(end: number): Promise<RepairStep[]> {
    const steps: RepairStep[] = [];
    for (const { dispatcher, path } of this.files.checkpoints) {
      const offset = await this.directory.checkpoints.read(path);
      if (offset === undefined) {
        const reason = `it does not hold an offset of 8 bytes: ${dispatcher} will receive the whole topic again`;
        steps.push({ kind: 'set-checkpoint', path, offset: 0, reason });
      } else if (offset > end) {
        steps.push({ kind: 'set-checkpoint', path, offset: end, reason: `it says ${offset}, but the topic ends at ${end}` });
      }
    }
    return steps;
  }

  private async refusalOfStart(): Promise<CorruptLogError | undefined> {
    const { fileSystem, stores, checkpoints } = this.directory;
    try {
      await new TopicInspection(fileSystem, stores, checkpoints, this.files.dir).inspect();
      return undefined;
    } catch (error) {
      if (error instanceof CorruptLogError) return error;
      throw error;
    }
  }

  private gap(from: number, to: number): Remaining {
    return {
      reason: `${from + 1 === to ? `the message at offset ${from} is` : `the messages at offsets ${from} to ${to - 1} are`} missing in ${this.files.dir}`,
      remedy: `restore the segment and index files that have them from a copy and run this again, or ${this.startWithout()}`,
    };
  }

  private noRemedy(reason: string): Remaining {
    return { reason, remedy: `restore this topic's directory from a copy, or ${this.startWithout()}` };
  }

  private startWithout(): string {
    return `start without the topic: ${this.moveAway(this.files.dir)}`;
  }

  private moveAway(path: string): string {
    return moveAwayCommand(this.directory.rootDir, path);
  }
}

function messages(count: number): string {
  return count === 1 ? '1 message' : `${count} messages`;
}
