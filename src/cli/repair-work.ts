import { dirname, join, relative } from 'node:path';
import { MmmqError } from '../core/index.js';
import {
  CheckpointStore,
  FileError,
  INDEX_RECORD_BYTES,
  OffsetIndexStore,
  OpenFiles,
  OpenMode,
  readFully,
  SegmentStore,
  writeFully,
  type File,
  type FileSystem,
  type SegmentStores,
} from '../storage/index.js';
import { PositionReader } from './position-reader.js';
import type { RepairStep, TopicPlan } from './repair-plan.js';
import { SegmentWalk } from './segment-walk.js';
import { SegmentWindow } from './segment-window.js';
import { REBUILT_SUFFIX } from './topic-files.js';

const COPY_CHUNK_BYTES = 1024 * 1024;
const RECORDS_PER_WRITE = 8192;

/**
 * Does what plans say. First everything that will be changed is copied aside, durably; only then the first byte is changed. Each step is
 * durable before the next one begins, so a crash leaves a topic with some of its steps done, and running the repair again does the others:
 *
 *   copy aside       the data directory is as it was; where this fails, the copies are removed again: a full disk needs their room
 *   rebuild-index    a new file beside the index is written and synced, then takes its name, then the directory is synced: the index is the
 *                    old or the new one, and both name only what the segment still has. A crash before the rename leaves the new file; the
 *                    next repair begins it anew, or removes it where the index needs no rebuilding any more
 *   cut              an index is cut before its segment, so that it never names what is gone
 *   make, remove     the name is durable, or gone for good, once the directory is synced
 *   set-checkpoint   eight bytes in place: the old offset or the new
 */
export class RepairWork {
  private readonly files: OpenFiles;
  private readonly stores: SegmentStores;
  private readonly checkpoints: CheckpointStore;
  /** Where the copies are; empty before its directory is made. */
  private asideDir = '';
  /** The paths of the copies, whole or not. */
  private readonly copies: string[] = [];

  constructor(
    private readonly fileSystem: FileSystem,
    private readonly rootDir: string,
    private readonly at: Date,
  ) {
    this.files = new OpenFiles(fileSystem);
    this.stores = { segments: new SegmentStore(this.files), offsetIndexes: new OffsetIndexStore(this.files) };
    this.checkpoints = new CheckpointStore(fileSystem, this.files);
  }

  /**
   * @returns the directory with the copies
   * @throws {MmmqError} when the disk fails; it says what has been changed. The repair can be run again
   */
  async apply(plans: readonly TopicPlan[]): Promise<string> {
    const steps = plans.flatMap((plan) => plan.steps);
    try {
      await this.copyAside(steps).catch(async (error: unknown) => {
        throw await this.nothingChanged(error);
      });
      // An interrupted repair may have left a new name that a power cut takes back: it stays, before what was to follow it is done.
      for (const dir of new Set(steps.map((step) => dirname(step.path)))) await this.fileSystem.syncDirectory(dir);
      for (const step of steps) await this.take(step);
      return this.asideDir;
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      const whatIsLeft = `the repair is not complete: run it again. What it was to change stands as it was in ${this.asideDir}`;
      throw new MmmqError(error.code, `${error.message}; ${whatIsLeft}`, { cause: error });
    } finally {
      await this.files.closeAll();
    }
  }

  private async nothingChanged(error: unknown): Promise<unknown> {
    if (!(error instanceof FileError)) return error;
    const what = `${error.message}; nothing in ${this.rootDir} was changed, as it could not be copied aside first`;
    return new MmmqError(error.code, `${what}${await this.removeCopies()}`, { cause: error });
  }

  /** @returns what to say of it */
  private async removeCopies(): Promise<string> {
    if (this.asideDir === '') return '';
    try {
      for (const copy of this.copies) await this.fileSystem.remove(copy);
      return `. The copies are removed again, and nothing but empty directories is left in ${this.asideDir}`;
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      return `. Remove ${this.asideDir}: its copies are not complete`;
    }
  }

  private async copyAside(steps: readonly RepairStep[]): Promise<void> {
    this.asideDir = await this.makeAsideDirectory();
    const made = new Set([this.asideDir]);
    for (const path of new Set(steps.map((step) => step.path))) {
      const target = join(this.asideDir, relative(this.rootDir, path));
      await this.makeDirectory(dirname(target), made);
      await this.copy(path, target);
    }
    for (const dir of made) await this.fileSystem.syncDirectory(dir);
    await this.fileSystem.syncDirectory(dirname(this.asideDir));
  }

  /** Beside the data directory: in it, what no broker made is taken for a leftover. A repair of the same moment may have the name. */
  private async makeAsideDirectory(): Promise<string> {
    const dir = `${this.rootDir}.repair-${this.at.toISOString().replaceAll(/[-:.]/g, '')}`;
    for (let nth = 1; ; nth += 1) {
      const free = nth === 1 ? dir : `${dir}-${nth}`;
      if (await this.fileSystem.makeDirectory(free)) return free;
    }
  }

  private async makeDirectory(dir: string, made: Set<string>): Promise<void> {
    if (made.has(dir)) return;
    await this.makeDirectory(dirname(dir), made);
    if (!(await this.fileSystem.makeDirectory(dir))) throw new FileError('make directory', dir, 'EEXIST');
    made.add(dir);
  }

  /** Copies a file and syncs the copy. One that is not there has nothing to be kept. */
  private async copy(path: string, target: string): Promise<void> {
    const source = await this.openIfThere(path);
    if (source === undefined) return;
    try {
      const copy = await this.fileSystem.open(target, OpenMode.NEW);
      this.copies.push(target);
      try {
        const chunk = Buffer.allocUnsafe(COPY_CHUNK_BYTES);
        for (let position = 0; ; position += chunk.length) {
          const length = await readFully(source, chunk, position);
          if (length > 0) await writeFully(copy, chunk.subarray(0, length), position);
          if (length < chunk.length) break;
        }
        await copy.sync();
      } finally {
        await copy.close();
      }
    } finally {
      await source.close();
    }
  }

  private async openIfThere(path: string): Promise<File | undefined> {
    try {
      return await this.fileSystem.open(path, OpenMode.READING);
    } catch (error) {
      if (error instanceof FileError && error.isMissing) return undefined;
      throw error;
    }
  }

  private async take(step: RepairStep): Promise<void> {
    switch (step.kind) {
      case 'rebuild-index':
        await this.rebuildIndex(step);
        return;
      case 'cut':
        await this.stores.segments.keepOpen(step.path, async () => {
          await this.stores.segments.truncate(step.path, step.size);
          await this.stores.segments.sync(step.path);
        });
        return;
      case 'make':
        await (await this.fileSystem.open(step.path, OpenMode.NEW)).close();
        await this.fileSystem.syncDirectory(dirname(step.path));
        return;
      case 'remove':
        await this.fileSystem.remove(step.path);
        await this.fileSystem.syncDirectory(dirname(step.path));
        return;
      case 'set-checkpoint':
        // A file that holds no offset may be too long.
        if (step.offset === 0) await this.checkpoints.reset(step.path);
        else await this.checkpoints.write(step.path, step.offset);
        return;
    }
  }

  private async rebuildIndex({ path, pair, expectedCount }: Extract<RepairStep, { kind: 'rebuild-index' }>): Promise<void> {
    const rebuilt = `${path}${REBUILT_SUFFIX}`;
    const file = await this.fileSystem.open(rebuilt, OpenMode.EXISTING_OR_NEW);
    try {
      // What an interrupted repair left under the name is no part of this one.
      await file.truncate(0);
      const positions = pair.hasOffsetIndex ? await PositionReader.of(this.stores, path) : PositionReader.empty(this.stores, path);
      const window = new SegmentWindow(this.stores, pair.segment, await this.stores.segments.size(pair.segment));
      const walk = new SegmentWalk(window, positions, expectedCount);
      const records = Buffer.allocUnsafe(RECORDS_PER_WRITE * INDEX_RECORD_BYTES);
      let held = 0;
      let written = 0;
      const flush = async (): Promise<void> => {
        await writeFully(file, records.subarray(0, held), written);
        written += held;
        held = 0;
      };
      for await (const { position } of walk.entries()) {
        records.writeBigInt64BE(BigInt(position), held);
        held += INDEX_RECORD_BYTES;
        if (held === records.length) await flush();
      }
      await flush();
      // The segment is what the new index speaks of: none of it may be in the kernel's memory alone.
      await this.stores.segments.sync(pair.segment);
      await file.sync();
    } finally {
      await file.close();
    }
    await this.fileSystem.rename(rebuilt, path);
    await this.fileSystem.syncDirectory(dirname(path));
    this.stores.offsetIndexes.reopen(path);
  }
}
