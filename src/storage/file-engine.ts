import { dirname, join, resolve } from 'node:path';
import type { LoggerService } from '@nestjs/common';
import {
  ErrorCode,
  InvalidValueError,
  isDeadLetterTopic,
  MmmqError,
  PASS_MAX_BYTES,
  systemClock,
  topicProblem,
  Turns,
  type Clock,
  type Engine,
  type EngineProblem,
} from '../core/index.js';
import { CHECKPOINTS_DIRECTORY, type CheckpointStore } from './checkpoint/index.js';
import { DiskReserve } from './disk-reserve.js';
import { DataDirectoryLock, FileError, type FileSystem, type OpenFiles } from './file-system/index.js';
import { FileTopicLog, type FileTopicLogParts } from './file-topic-log.js';
import {
  NOTHING_SYNCED,
  StartRefusedError,
  SyncedTopics,
  TopicInspection,
  TopicRepair,
  TopicSync,
  type TopicFindings,
} from './recovery/index.js';
import type { OffsetIndexStore, SegmentStore } from './segment/index.js';

export interface FileEngineOptions {
  /** Where the topics' directories are. Made where it is missing. */
  readonly rootDir: string;
  readonly segmentMaxBytes: number;
  /** The size of the {@link DiskReserve}; 0 keeps none. */
  readonly reserveBytes: number;
}

export interface FileEngineParts {
  readonly fileSystem: FileSystem;
  readonly files: OpenFiles;
  readonly segments: SegmentStore;
  readonly offsetIndexes: OffsetIndexStore;
  readonly checkpoints: CheckpointStore;
  readonly logger: LoggerService;
  readonly clock?: Clock;
}

/** Topics are looked at and repaired so many at a time: enough to keep a disk busy, few enough to bound the memory. */
const TOPICS_AT_A_TIME = 32;
/** Its directory, the one of its checkpoints, the two files of its first segment, and a checkpoint. */
const FILES_PER_NEW_TOPIC = 5;
const OWNED_CHECK_MS = 1_000;
/** So many appends, reads, and checkpoints each use the disk at a time; one has two files open at most. */
const TURNS_AT_A_TIME = 64;
/** What appends, reads and checkpoints can have open at once. */
export const MAX_FILES_IN_USE = 3 * 2 * TURNS_AT_A_TIME;

interface FoundTopic {
  readonly topic: string;
  readonly dir: string;
  readonly findings: TopicFindings;
}

/** The engine that keeps each topic in a directory of segment files, offset indexes and checkpoints. */
export class FileEngine implements Engine {
  private readonly rootDir: string;
  private readonly reserve: DiskReserve;
  private readonly synced: SyncedTopics;
  private readonly logParts: FileTopicLogParts;
  private readonly logs: FileTopicLog[] = [];
  private lock: DataDirectoryLock | undefined;
  /** A topic that could not be made, until one was or the disk is well. */
  private creationProblem: EngineProblem | undefined;
  private ownership: { readonly checkedAtMs: number; readonly isLost: boolean } = { checkedAtMs: 0, isLost: false };
  private readonly clock: Clock;

  constructor(
    private readonly parts: FileEngineParts,
    options: FileEngineOptions,
  ) {
    this.rootDir = resolve(options.rootDir);
    const { fileSystem, segments, offsetIndexes, checkpoints, logger } = parts;
    this.clock = parts.clock ?? systemClock;
    this.reserve = new DiskReserve(fileSystem, logger, this.rootDir, options.reserveBytes);
    this.synced = new SyncedTopics(fileSystem, logger, this.rootDir);
    this.logParts = {
      fileSystem,
      stores: { segments, offsetIndexes },
      checkpoints,
      reserve: this.reserve,
      logger,
      clock: this.clock,
      assertOwned: () => this.assertOwned(),
      appendTurns: new Turns(TURNS_AT_A_TIME),
      readTurns: new Turns(TURNS_AT_A_TIME),
      checkpointTurns: new Turns(TURNS_AT_A_TIME),
      segmentMaxBytes: options.segmentMaxBytes,
    };
  }

  /**
   * In this order, so that a start that is refused has changed nothing and one that a crash interrupts can be run again: lock, look at
   * everything, refuse or repair, sync what a killed process may have left unsynced, serve.
   * @throws {DataDirectoryLockedError} another broker has the directory
   * @throws {StartRefusedError} what was found, all of it
   */
  async open(): Promise<readonly FileTopicLog[]> {
    await this.makeRootDirectory();
    const lock = await DataDirectoryLock.acquire(this.parts.fileSystem, this.rootDir);
    try {
      await this.parts.fileSystem.inStart(() => this.recover());
    } catch (error) {
      await this.parts.files.closeAll();
      await lock.withdraw();
      throw withRemedy(error);
    }
    this.lock = lock;
    await lock.sign();
    this.parts.logger.log(`the data directory ${this.rootDir} has ${this.logs.length} topic${this.logs.length === 1 ? '' : 's'}`);
    return this.logs;
  }

  private async recover(): Promise<void> {
    await this.synced.read();
    const topics = await this.inspectTopics();
    await this.parts.fileSystem.syncDirectory(this.rootDir);
    this.logs.push(...(await forEachTopic(topics, (topic) => this.recovered(topic))));
    await this.reserve.prepare();
    await this.recordSynced(this.logs.filter(({ topic }) => !this.synced.isProven(topic)));
  }

  /** Makes the directories of a topic, durably. Its first segment comes with its first append. */
  async create(topic: string): Promise<FileTopicLog> {
    const problem = topicProblem(topic);
    if (problem !== undefined) throw new InvalidValueError('topic', topic, problem);
    await this.assertOwned();
    try {
      const log = await (isDeadLetterTopic(topic) ? this.reserve.use(() => this.make(topic)) : this.makeForProducers(topic));
      this.creationProblem = undefined;
      this.logs.push(log);
      return log;
    } catch (error) {
      const reason = `it cannot be made: ${error instanceof Error ? error.message : String(error)}`;
      this.parts.logger.error(`topic ${topic}: ${reason}`);
      if (error instanceof FileError) this.creationProblem = { topic, reason };
      throw error;
    }
  }

  private async makeForProducers(topic: string): Promise<FileTopicLog> {
    await this.reserve.leave();
    return this.make(topic);
  }

  private async make(topic: string): Promise<FileTopicLog> {
    const { fileSystem } = this.parts;
    const dir = join(this.rootDir, topic);
    await fileSystem.makeDirectory(dir);
    await fileSystem.makeDirectory(join(dir, CHECKPOINTS_DIRECTORY));
    await fileSystem.syncDirectory(this.rootDir);
    // The directory may have been there, with what an earlier crash left in it.
    return this.recovered({ topic, dir, findings: await this.inspection(dir).inspect() });
  }

  /**
   * The topics that refuse, those that found the disk full, one that could not be made, and a reserve that was given away. All but the first
   * are over once the disk has room and takes a sync, without a publish to prove it: whoever sends publishes only to a ready broker would
   * otherwise wait for ever.
   */
  async problems(): Promise<readonly EngineProblem[]> {
    const ownershipProblem = await this.assertOwned().then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (ownershipProblem !== undefined) return [{ reason: ownershipProblem }];
    await this.reserve.refill();
    const full = this.logs.filter((log) => log.diskFull !== undefined);
    if ((full.length > 0 || this.creationProblem !== undefined) && (await this.isWell())) {
      this.creationProblem = undefined;
      for (const log of full) log.forgetDiskFull();
    }
    const problems: EngineProblem[] = this.logs.flatMap(({ topic, problem }) =>
      problem === undefined ? [] : [{ topic, reason: problem }],
    );
    if (this.creationProblem !== undefined) problems.push(this.creationProblem);
    if (this.reserve.problem !== undefined) problems.push({ reason: this.reserve.problem.message });
    return problems;
  }

  /**
   * Whoever removes the lock file, or moves the data directory away, lets another broker in. What that one has written this one does not know, so
   * it writes nothing any more. Looked at once a second at most: it costs two calls.
   * @throws {MmmqError} LOCKED
   */
  private async assertOwned(): Promise<void> {
    const { lock, ownership } = this;
    const nowMs = this.clock.now();
    const sinceCheckMs = nowMs - ownership.checkedAtMs;
    // A clock that was put back does not keep it from being looked at.
    if (lock !== undefined && !ownership.isLost && (sinceCheckMs >= OWNED_CHECK_MS || sinceCheckMs < 0)) {
      this.ownership = { checkedAtMs: nowMs, isLost: false };
      const isLost = !(await lock.isHeld());
      if (isLost) this.ownership = { checkedAtMs: nowMs, isLost };
    }
    if (!this.ownership.isLost) return;
    throw new MmmqError(
      ErrorCode.LOCKED,
      `the lock file of the data directory ${this.rootDir} was removed, or the directory was moved, under this broker: ` +
        'another one may have written there since, so this one writes nothing any more; stop both, and start one',
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.logs.map((log) => log.close()));
    await this.parts.files.closeAll();
    const { lock } = this;
    this.lock = undefined;
    if (lock === undefined) return;
    if (!this.ownership.isLost && (await lock.isHeld())) {
      await this.parts.fileSystem.inStart(() => this.recordSynced(this.logs.filter((log) => log.hasChanged)));
    }
    await lock.release();
  }

  /** For the next start. On a full disk others need the room. */
  private async recordSynced(logs: readonly FileTopicLog[]): Promise<void> {
    if (!this.reserve.isWhole) return;
    const synced = logs.filter((log) => log.isSynced).map((log) => log.place);
    await this.synced.record(
      synced,
      this.logs.map(({ topic }) => topic),
    );
  }

  /**
   * Makes what is missing of the path, and each new directory's name durable. What is there may be a link to a directory, and its name may
   * not be durable: a start that was interrupted made it.
   */
  private async makeRootDirectory(): Promise<void> {
    const { fileSystem } = this.parts;
    const make = async (dir: string): Promise<void> => {
      try {
        await fileSystem.list(dir);
      } catch (error) {
        if (!(error instanceof FileError) || !error.isMissing || dirname(dir) === dir) throw error;
        await make(dirname(dir));
        await fileSystem.makeDirectory(dir);
        await fileSystem.syncDirectory(dirname(dir));
        return;
      }
      await this.syncIfAllowed(dirname(dir));
    };
    try {
      await make(this.rootDir);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      throw new MmmqError(
        error.code,
        `the data directory ${this.rootDir} cannot be used (${error.message}): ` +
          'set mmmq.broker.storage.root-dir to a directory that this process may write to, or to one that it can make',
        { cause: error },
      );
    }
  }

  /** Where this process may not even look, it has made nothing. */
  private async syncIfAllowed(dir: string): Promise<void> {
    try {
      await this.parts.fileSystem.syncDirectory(dir);
    } catch (error) {
      if (!(error instanceof FileError) || (error.errno !== 'EACCES' && error.errno !== 'EPERM')) throw error;
    }
  }

  private async inspectTopics(): Promise<FoundTopic[]> {
    const { fileSystem, logger } = this.parts;
    const dirs: string[] = [];
    for (const entry of await fileSystem.list(this.rootDir)) {
      if (entry.kind === 'directory' && topicProblem(entry.name) === undefined) dirs.push(entry.name);
      else if (!entry.name.startsWith('.')) logger.warn(`${join(this.rootDir, entry.name)} is no topic and is left alone`);
    }
    const topics: FoundTopic[] = [];
    const refusals: MmmqError[] = [];
    await forEachTopic(dirs, async (topic) => {
      const dir = join(this.rootDir, topic);
      try {
        const findings = await this.inspection(dir).inspect();
        for (const warning of findings.warnings) logger.warn(warning);
        // An empty directory is a topic that a crash kept from being made, or somebody else's.
        if (findings.segments.length > 0 || findings.hasCheckpointsDirectory) topics.push({ topic, dir, findings });
      } catch (error) {
        if (!(error instanceof MmmqError)) throw error;
        refusals.push(error);
      }
    });
    if (refusals.length > 0) throw new StartRefusedError(this.rootDir, refusals);
    return topics.sort((a, b) => (a.topic < b.topic ? -1 : 1));
  }

  /** Repairs, and then syncs all that this start relies on. What is shown from here on must survive the next power cut. */
  private async recovered({ topic, dir, findings }: FoundTopic): Promise<FileTopicLog> {
    const { fileSystem, segments, offsetIndexes, checkpoints, logger } = this.parts;
    const repair = new TopicRepair(fileSystem, { segments, offsetIndexes }, checkpoints);
    let { segments: segmentsFound, lastPass } = findings;
    for (const step of findings.repairs) {
      logger.warn(`recovery of ${step.path}: ${step.reason}`);
      try {
        await repair.apply(step);
      } catch (error) {
        if (step.kind !== 'make' || !(error instanceof FileError) || !error.isDiskFull) throw error;
        // A full disk keeps nobody from reading: the half pair is left out, and the next append begins the segment anew.
        logger.warn(`${error.message}; the segment is begun anew when there is room`);
        segmentsFound = segmentsFound.slice(0, -1);
        lastPass = segmentsFound.at(-1)?.count ?? 0;
      }
    }
    const last = segmentsFound.at(-1);
    // What had to be repaired has not been left alone since it was synced.
    const synced = findings.repairs.length > 0 ? NOTHING_SYNCED : findings.synced;
    const { hasCheckpointsDirectory } = findings;
    const sync = new TopicSync(fileSystem, { segments, offsetIndexes });
    const isSynced = await sync.sync({ dir, last, lastPass, hasCheckpointsDirectory }, synced);
    return new FileTopicLog(this.logParts, topic, dir, { segments: segmentsFound, dispatchers: findings.dispatchers, isSynced });
  }

  private inspection(dir: string): TopicInspection {
    const { fileSystem, segments, offsetIndexes, checkpoints } = this.parts;
    return new TopicInspection(fileSystem, { segments, offsetIndexes }, checkpoints, dir, this.synced);
  }

  private async isWell(): Promise<boolean> {
    const { fileSystem } = this.parts;
    try {
      const { bytes, files } = await fileSystem.room(this.rootDir);
      if (bytes < PASS_MAX_BYTES || files < FILES_PER_NEW_TOPIC) return false;
      await fileSystem.syncDirectory(this.rootDir);
      return true;
    } catch {
      return false;
    }
  }
}

/** An error of the disk in the middle of a recovery: what was done stays, and the next start does the rest. */
function withRemedy(error: unknown): unknown {
  if (!(error instanceof FileError)) return error;
  return new MmmqError(error.code, `${error.message}. The start did not come to its end; it can be repeated when the disk is well`, {
    cause: error,
  });
}

/** Does the work for each topic, a few at a time, all of them. @throws the first error, when nothing is under way any more */
async function forEachTopic<T, R>(topics: readonly T[], work: (topic: T) => Promise<R>): Promise<R[]> {
  const turns = new Turns(TOPICS_AT_A_TIME);
  const outcomes = await Promise.allSettled(topics.map((topic) => turns.take(() => work(topic))));
  return outcomes.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}
