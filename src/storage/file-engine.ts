import { dirname, join, resolve } from 'node:path';
import type { LoggerService } from '@nestjs/common';
import {
  InvalidValueError,
  MmmqError,
  PASS_MAX_BYTES,
  systemClock,
  topicProblem,
  type Clock,
  type Engine,
  type EngineProblem,
} from '../core/index.js';
import { CHECKPOINTS_DIRECTORY, type CheckpointStore } from './checkpoint/index.js';
import { DataDirectoryLock, FileError, LOCK_FILE_NAME, type FileSystem, type OpenFiles } from './file-system/index.js';
import { FileTopicLog, type FileTopicLogParts } from './file-topic-log.js';
import { StartRefusedError, TopicInspection, TopicRepair, type TopicFindings } from './recovery/index.js';
import { offsetIndexFileName, segmentFileName, type OffsetIndexStore, type SegmentStore } from './segment/index.js';

export interface FileEngineOptions {
  /** Where the topics' directories are. Made where it is missing. */
  readonly rootDir: string;
  readonly segmentMaxBytes: number;
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
const TOPICS_AT_A_TIME = 8;

interface FoundTopic {
  readonly topic: string;
  readonly dir: string;
  readonly findings: TopicFindings;
}

/** The engine that keeps each topic in a directory of segment files, offset indexes and checkpoints. */
export class FileEngine implements Engine {
  private readonly rootDir: string;
  private readonly logParts: FileTopicLogParts;
  private readonly logs: FileTopicLog[] = [];
  private lock: DataDirectoryLock | undefined;
  /** The disk was full when a topic was to be made. */
  private creationProblem: EngineProblem | undefined;

  constructor(
    private readonly parts: FileEngineParts,
    options: FileEngineOptions,
  ) {
    this.rootDir = resolve(options.rootDir);
    const { fileSystem, segments, offsetIndexes, checkpoints, logger } = parts;
    this.logParts = {
      fileSystem,
      stores: { segments, offsetIndexes },
      checkpoints,
      logger,
      clock: parts.clock ?? systemClock,
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
      const topics = await this.inspectTopics();
      await this.parts.fileSystem.syncDirectory(this.rootDir);
      await inTurns(topics, (topic) => this.recover(topic));
      this.logs.push(...topics.map(({ topic, dir, findings }) => new FileTopicLog(this.logParts, topic, dir, findings)));
    } catch (error) {
      await this.parts.files.closeAll();
      await lock.withdraw();
      throw error;
    }
    this.lock = lock;
    await lock.sign();
    this.parts.logger.log(`the data directory ${this.rootDir} holds ${this.logs.length} topics`);
    return this.logs;
  }

  /** Makes the directories of a topic, durably. Its first segment comes with its first append. */
  async create(topic: string): Promise<FileTopicLog> {
    const problem = topicProblem(topic);
    if (problem !== undefined) throw new InvalidValueError('topic', topic, problem);
    const { fileSystem } = this.parts;
    const dir = join(this.rootDir, topic);
    try {
      await fileSystem.makeDirectory(dir);
      await fileSystem.makeDirectory(join(dir, CHECKPOINTS_DIRECTORY));
      await fileSystem.syncDirectory(this.rootDir);
      // The directory may have been there, with what an earlier crash left in it.
      const findings = await this.inspection(dir).inspect();
      await this.recover({ topic, dir, findings });
      this.creationProblem = undefined;
      const log = new FileTopicLog(this.logParts, topic, dir, findings);
      this.logs.push(log);
      return log;
    } catch (error) {
      this.parts.logger.error(`topic ${topic} cannot be made: ${error instanceof Error ? error.message : String(error)}`);
      if (error instanceof FileError && error.isDiskFull) this.creationProblem = { topic, reason: error.message };
      throw error;
    }
  }

  /**
   * The topics that refuse, and those that found the disk full. The second is forgotten once there is room again, without a publish to
   * prove it: whoever sends publishes only to a ready broker would otherwise wait for ever.
   */
  async problems(): Promise<readonly EngineProblem[]> {
    const full = this.logs.filter((log) => log.diskFull !== undefined);
    if ((full.length > 0 || this.creationProblem !== undefined) && (await this.hasRoom())) {
      this.creationProblem = undefined;
      for (const log of full) log.forgetDiskFull();
    }
    const problems = this.logs.flatMap((log) => (log.problem === undefined ? [] : [{ topic: log.topic, reason: log.problem }]));
    return this.creationProblem === undefined ? problems : [...problems, this.creationProblem];
  }

  async close(): Promise<void> {
    await Promise.all(this.logs.map((log) => log.close()));
    await this.parts.files.closeAll();
    await this.lock?.release();
    this.lock = undefined;
  }

  /** Makes what is missing of the path, and each new directory's name durable. */
  private async makeRootDirectory(): Promise<void> {
    const { fileSystem } = this.parts;
    const make = async (dir: string): Promise<void> => {
      try {
        if (await fileSystem.makeDirectory(dir)) await fileSystem.syncDirectory(dirname(dir));
      } catch (error) {
        if (!(error instanceof FileError) || !error.isMissing || dirname(dir) === dir) throw error;
        await make(dirname(dir));
        await make(dir);
      }
    };
    await make(this.rootDir);
  }

  private async inspectTopics(): Promise<FoundTopic[]> {
    const { fileSystem, logger } = this.parts;
    const dirs: string[] = [];
    for (const entry of await fileSystem.list(this.rootDir)) {
      if (entry.kind === 'directory' && topicProblem(entry.name) === undefined) dirs.push(entry.name);
      else if (entry.name !== LOCK_FILE_NAME) logger.warn(`${join(this.rootDir, entry.name)} is no topic and is left alone`);
    }
    const topics: FoundTopic[] = [];
    const refusals: MmmqError[] = [];
    await inTurns(dirs, async (topic) => {
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

  /**
   * Repairs, and then syncs all that this start relies on: a process that was killed leaves bytes and names that can be read and are not on
   * the disk yet. What is shown from here on must survive the next power cut.
   */
  private async recover({ dir, findings }: FoundTopic): Promise<void> {
    const { fileSystem, segments, offsetIndexes, checkpoints, logger } = this.parts;
    const repair = new TopicRepair(fileSystem, { segments, offsetIndexes }, checkpoints);
    for (const step of findings.repairs) {
      logger.warn(`recovery of ${step.path}: ${step.reason}`);
      await repair.apply(step);
    }
    const last = findings.segments.at(-1);
    if (last !== undefined) {
      await segments.sync(join(dir, segmentFileName(last.baseOffset)));
      await offsetIndexes.sync(join(dir, offsetIndexFileName(last.baseOffset)));
    }
    if (findings.hasCheckpointsDirectory) await fileSystem.syncDirectory(join(dir, CHECKPOINTS_DIRECTORY));
    await fileSystem.syncDirectory(dir);
  }

  private inspection(dir: string): TopicInspection {
    const { fileSystem, segments, offsetIndexes, checkpoints } = this.parts;
    return new TopicInspection(fileSystem, { segments, offsetIndexes }, checkpoints, dir);
  }

  private async hasRoom(): Promise<boolean> {
    return (await this.parts.fileSystem.freeBytes(this.rootDir)) >= PASS_MAX_BYTES;
  }
}

/** Does the work for each item, a few at a time; stops beginning new ones after the first error, which it throws when the others are done. */
async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  let failed: { error: unknown } | undefined;
  const worker = async (): Promise<void> => {
    for (const item of waiting) {
      if (failed !== undefined) return;
      try {
        await work(item);
      } catch (error) {
        failed ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: TOPICS_AT_A_TIME }, worker));
  if (failed !== undefined) throw failed.error;
}
