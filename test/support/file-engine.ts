import type { LoggerService } from '@nestjs/common';
import type { Clock, LogEntry, TopicLog } from '../../src/core/index.js';
import { NodeFileSystem, type FileSystem } from '../../src/storage/file-system/index.js';
import { CheckpointStore, FileEngine, OffsetIndexStore, OpenFiles, SegmentStore } from '../../src/storage/index.js';

export interface TestEngineOptions {
  readonly fileSystem?: FileSystem;
  readonly segmentMaxBytes?: number;
  /** None where it is left out. */
  readonly reserveBytes?: number;
  readonly maxOpenFiles?: number;
  readonly clock?: Clock;
}

/** A file engine as StorageModule makes it, with what it logged. */
export function fileEngine(rootDir: string, options: TestEngineOptions = {}): { engine: FileEngine; log: string[] } {
  const log: string[] = [];
  const note =
    (level: string) =>
    (message: unknown): void => {
      log.push(`${level}: ${String(message)}`);
    };
  const logger: LoggerService = { log: note('log'), warn: note('warn'), error: note('error') };
  const fileSystem = options.fileSystem ?? new NodeFileSystem();
  const files = new OpenFiles(fileSystem, options.maxOpenFiles);
  const engine = new FileEngine(
    {
      fileSystem: files.fileSystem,
      files,
      segments: new SegmentStore(files),
      offsetIndexes: new OffsetIndexStore(files),
      checkpoints: new CheckpointStore(files.fileSystem, files),
      logger,
      ...(options.clock === undefined ? {} : { clock: options.clock }),
    },
    { rootDir, segmentMaxBytes: options.segmentMaxBytes ?? 64 * 1024 * 1024, reserveBytes: options.reserveBytes ?? 0 },
  );
  return { engine, log };
}

/** Reads a topic from `offset` to its end, a few messages at a time. */
export async function readAll(topic: TopicLog, offset = 0, limits = { maxCount: 7, maxBytes: 1000 }): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  while (offset + entries.length < topic.count) entries.push(...(await topic.read(offset + entries.length, limits)));
  return entries;
}

/** The payloads as text; a corrupt entry as undefined. */
export async function readTexts(topic: TopicLog, offset = 0): Promise<(string | undefined)[]> {
  return (await readAll(topic, offset)).map((entry) => entry.payload?.toString());
}
