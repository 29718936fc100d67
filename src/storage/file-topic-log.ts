import { join } from 'node:path';
import type { LoggerService } from '@nestjs/common';
import {
  backoffMs,
  ErrorCode,
  isDeadLetterTopic,
  MmmqError,
  type AppendOutcome,
  type Clock,
  type LogEntry,
  type ReadLimits,
  type TopicLog,
  type Turns,
} from '../core/index.js';
import { CHECKPOINTS_DIRECTORY, checkpointFileName, type CheckpointStore } from './checkpoint/index.js';
import type { DiskReserve } from './disk-reserve.js';
import { FileError, type FileSystem } from './file-system/index.js';
import { CorruptLogError, TopicInspection, type RecordedTopic, type TopicFindings } from './recovery/index.js';
import { LogUntrustedError, SegmentChain, type SegmentStores } from './segment/index.js';

/** The life of a topic's log once the start has recovered it. Reading and committing go on in every state but the last, which takes nothing. */
export const TopicLogState = {
  /** Appends are taken. */
  APPENDING: 'appending',
  /** A sync failed, so nothing beyond the durable part can be trusted: appends are refused until re-opening through recovery succeeds. */
  REFUSING: 'refusing',
  /** The broker has stopped. */
  CLOSED: 'closed',
} as const;
export type TopicLogState = (typeof TopicLogState)[keyof typeof TopicLogState];

const MAY_COME_FROM: Readonly<Record<TopicLogState, readonly TopicLogState[]>> = {
  [TopicLogState.APPENDING]: [TopicLogState.REFUSING],
  [TopicLogState.REFUSING]: [TopicLogState.APPENDING],
  [TopicLogState.CLOSED]: [TopicLogState.APPENDING, TopicLogState.REFUSING],
};

/** The waits between attempts to re-open a topic that refuses. */
const REOPEN_BACKOFF = { initialMs: 1_000, maxMs: 60_000 };

export interface FileTopicLogParts {
  readonly fileSystem: FileSystem;
  readonly stores: SegmentStores;
  readonly checkpoints: CheckpointStore;
  readonly reserve: DiskReserve;
  /** @throws {MmmqError} LOCKED when the data directory may be another broker's by now */
  readonly assertOwned: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: LoggerService;
  readonly segmentMaxBytes: number;
  /** Appends, reads and checkpoints of all topics each share one, so that a thousand checkpoints keep no publish waiting, nor its look for an id. */
  readonly appendTurns: Turns;
  readonly readTurns: Turns;
  readonly checkpointTurns: Turns;
}

/** A topic's log in files: its segment chain, its checkpoints, and what becomes of it after an error of the disk. */
export class FileTopicLog implements TopicLog {
  private state: TopicLogState = TopicLogState.APPENDING;
  private refusal: LogUntrustedError | undefined;
  private noRoom: string | undefined;
  private readonly chain: SegmentChain;
  private readonly arrivalListeners = new Set<() => void>();
  /** The checkpoints whose file and name are known to be durable. */
  private readonly durableCheckpoints: Set<string>;
  /** Ends the waits of re-opening. There while a topic re-opens itself: ten thousand others do without. */
  private closing: AbortController | undefined;
  private reopening: Promise<void> = Promise.resolve();
  private changesBegun = 0;
  private changesSynced = 0;

  constructor(
    private readonly parts: FileTopicLogParts,
    readonly topic: string,
    private readonly topicDir: string,
    found: Pick<TopicFindings, 'segments' | 'dispatchers'> & { readonly isSynced: boolean },
  ) {
    const { fileSystem, stores, segmentMaxBytes } = parts;
    this.chain = SegmentChain.of(fileSystem, stores, { topicDir, segmentMaxBytes }, found.segments);
    this.durableCheckpoints = new Set(found.dispatchers);
    // As a change that did not come to its end.
    if (!found.isSynced) this.changesBegun = 1;
  }

  get count(): number {
    return this.chain.count;
  }

  /** Whether anything was appended, or a checkpoint made, since the start, which may have left something undone itself. */
  get hasChanged(): boolean {
    return this.changesBegun > 0;
  }

  /** Whether what the start found, and every change since, is on the disk. A change that failed leaves it at no, whatever became of it. */
  get isSynced(): boolean {
    return this.changesSynced === this.changesBegun;
  }

  /** Its directory and its last segment, for whoever writes down how they stand. */
  get place(): RecordedTopic {
    const last = this.chain.extents.at(-1);
    const extent = { count: last?.count ?? 0, endPosition: last?.endPosition ?? 0 };
    return { dir: this.topicDir, lastBaseOffset: last?.baseOffset, extent };
  }

  /** Why appends are refused at the moment, or can be expected to be, or undefined when all is well. */
  get problem(): string | undefined {
    return this.state === TopicLogState.REFUSING ? this.refusal?.message : this.diskFull;
  }

  /** The last append found no room on the disk. */
  get diskFull(): string | undefined {
    return this.noRoom;
  }

  forgetDiskFull(): void {
    this.noRoom = undefined;
  }

  async append(payloads: readonly Buffer[]): Promise<AppendOutcome> {
    const first = this.count;
    let failure: MmmqError | undefined;
    try {
      this.assertAppending();
      await this.parts.assertOwned();
      if (isDeadLetterTopic(this.topic)) {
        await this.parts.reserve.use(() => this.appendInTurn(payloads.slice(this.count - first)));
      } else {
        await this.parts.reserve.leave();
        await this.appendInTurn(payloads);
      }
      this.noRoom = undefined;
    } catch (error) {
      failure = this.afterFailure(error);
    }
    const offsets = Array.from({ length: this.count - first }, (_, index) => first + index);
    if (offsets.length > 0) this.announceArrival();
    return failure === undefined ? { offsets } : { offsets, failure };
  }

  private appendInTurn(payloads: readonly Buffer[]): Promise<void> {
    return this.parts.appendTurns.take(() => this.changing(() => this.chain.append(payloads)));
  }

  read(offset: number, limits: ReadLimits): Promise<readonly LogEntry[]> {
    return this.inTurn(this.parts.readTurns, () => this.chain.read(offset, limits));
  }

  tailOffset(maxCount: number, maxBytes: number): Promise<number> {
    return this.inTurn(this.parts.readTurns, () => this.chain.tailOffset(maxCount, maxBytes));
  }

  onArrival(listener: () => void): () => void {
    this.arrivalListeners.add(listener);
    return () => this.arrivalListeners.delete(listener);
  }

  committed(dispatcher: string): Promise<number> {
    return this.inCheckpointTurn(() => this.readCheckpoint(dispatcher));
  }

  commit(dispatcher: string, nextOffset: number): Promise<void> {
    return this.inCheckpointTurn(() => this.parts.checkpoints.write(this.checkpointPath(dispatcher), nextOffset));
  }

  /** Takes nothing any more, and ends re-opening. */
  async close(): Promise<void> {
    if (this.state === TopicLogState.CLOSED) return;
    this.transition(TopicLogState.CLOSED);
    this.closing?.abort();
    await this.reopening;
  }

  private async readCheckpoint(dispatcher: string): Promise<number> {
    const { checkpoints, logger } = this.parts;
    if (!this.durableCheckpoints.has(dispatcher)) {
      await this.changing(() => checkpoints.make(this.topicDir, dispatcher));
      this.durableCheckpoints.add(dispatcher);
    }
    const path = this.checkpointPath(dispatcher);
    const offset = await checkpoints.read(path);
    if (offset !== undefined) return offset;
    logger.warn(`${path} does not hold an offset of 8 bytes: ${dispatcher} begins again at offset 0 of ${this.topic}`);
    await checkpoints.reset(path);
    return 0;
  }

  private async changing<T>(change: () => Promise<T>): Promise<T> {
    this.changesBegun += 1;
    const result = await change();
    this.changesSynced += 1;
    return result;
  }

  private inCheckpointTurn<T>(work: () => Promise<T>): Promise<T> {
    const { assertOwned, checkpointTurns, reserve } = this.parts;
    return this.inTurn(checkpointTurns, async () => {
      await assertOwned();
      return reserve.use(work);
    });
  }

  private inTurn<T>(turns: Turns, work: () => Promise<T>): Promise<T> {
    return turns.take(async () => {
      this.assertOpen();
      return work();
    });
  }

  private checkpointPath(dispatcher: string): string {
    return join(this.topicDir, CHECKPOINTS_DIRECTORY, checkpointFileName(dispatcher));
  }

  /** A closed log has given its directory away: a late commit could move a checkpoint that another broker has moved since. */
  private assertOpen(): void {
    if (this.state === TopicLogState.CLOSED) throw new MmmqError(ErrorCode.CLOSED, 'the broker is stopped');
  }

  private assertAppending(): void {
    this.assertOpen();
    if (this.state === TopicLogState.REFUSING) {
      const code = this.refusal?.code === ErrorCode.DISK_FULL ? ErrorCode.DISK_FULL : ErrorCode.TOPIC_REFUSING;
      throw new MmmqError(code, `the topic takes no messages until it could be re-opened: ${this.refusal?.message ?? ''}`, {
        cause: this.refusal,
      });
    }
  }

  private afterFailure(error: unknown): MmmqError {
    if (error instanceof LogUntrustedError) {
      this.refusal = error;
      this.transition(TopicLogState.REFUSING);
      this.parts.logger.error(`topic ${this.topic} refuses messages from offset ${this.count} on: ${error.message}`);
      this.reopening = this.reopen();
      return error;
    }
    if (error instanceof FileError) {
      this.parts.logger.error(`an append to topic ${this.topic} failed and was taken back: ${error.message}`);
      if (!error.isDiskFull) return new MmmqError(ErrorCode.APPEND_FAILED, error.message, { cause: error });
      this.noRoom = error.message;
      return error;
    }
    if (error instanceof MmmqError) return error;
    throw error;
  }

  /** Cuts back to what is durable, looks at the files as a start would, and only then takes messages again. */
  private async reopen(): Promise<void> {
    const { clock, logger } = this.parts;
    const { signal } = (this.closing = new AbortController());
    for (let run = 1; ; run += 1) {
      await clock.sleep(backoffMs(run, REOPEN_BACKOFF), signal);
      if (signal.aborted) return;
      try {
        // What stands behind the durable part is cut away: it must not be another broker's.
        await this.parts.assertOwned();
        await this.chain.cutBack();
        await this.verify();
      } catch (error) {
        logger.error(`topic ${this.topic} still refuses messages: ${error instanceof Error ? error.message : String(error)}`);
        continue;
      }
      if (signal.aborted) return;
      this.refusal = undefined;
      this.transition(TopicLogState.APPENDING);
      logger.log(`topic ${this.topic} takes messages again, from offset ${this.count} on`);
      return;
    }
  }

  /** What the files say must be what was visible all along. */
  private async verify(): Promise<void> {
    const { fileSystem, stores, checkpoints } = this.parts;
    const { segments } = await new TopicInspection(fileSystem, stores, checkpoints, this.topicDir).inspect();
    // An empty segment behind the chain is a rotation that did not come to its end.
    const holding = segments.filter((segment) => segment.count > 0);
    const expected = this.chain.extents.filter((segment) => segment.count > 0);
    if (JSON.stringify(holding) !== JSON.stringify(expected)) {
      throw new CorruptLogError(this.topicDir, 0, 'the files no longer hold what was read from them before');
    }
  }

  private announceArrival(): void {
    for (const listener of this.arrivalListeners) {
      try {
        listener();
      } catch (error) {
        // One listener's mistake must neither fail the append, which is done, nor keep the others waiting.
        this.parts.logger.error(
          `a listener for arrivals in ${this.topic} failed: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
    }
  }

  private transition(to: TopicLogState): void {
    if (!MAY_COME_FROM[to].includes(this.state)) throw new Error(`topic ${this.topic} cannot become ${to}, it is ${this.state}`);
    this.state = to;
  }
}
