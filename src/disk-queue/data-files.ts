import { join } from 'node:path';
import { FileError, type File, type FileSystem, type OpenMode } from '../storage/file-system/index.js';
import { badFileName, dataFileName, isForeignTemporaryFileName, parseDataFileName } from './file-name.js';

/** What the directory has of a queue. */
export interface FoundFiles {
  /** Of the data files, ascending. */
  readonly numbers: readonly number[];
  /** No data file, set aside or not, has a higher number; -1 where there is none. */
  readonly highest: number;
  /** Paths of what crashes left of metadata that never took its place. */
  readonly leftovers: readonly string[];
}

/** The data files of one queue, by their numbers. */
export class DataFiles {
  constructor(
    private readonly fileSystem: FileSystem,
    readonly dir: string,
    readonly queue: string,
  ) {}

  path(file: number): string {
    return join(this.dir, dataFileName(this.queue, file));
  }

  open(file: number, mode: OpenMode): Promise<File> {
    return this.fileSystem.open(this.path(file), mode);
  }

  async find(): Promise<FoundFiles> {
    const numbers: number[] = [];
    const leftovers: string[] = [];
    let highest = -1;
    for (const { name, kind } of await this.fileSystem.list(this.dir)) {
      if (kind !== 'file') continue;
      const found = parseDataFileName(this.queue, name);
      if (found !== undefined) highest = Math.max(highest, found.file);
      if (found?.isBad === false) numbers.push(found.file);
      if (isForeignTemporaryFileName(this.queue, name)) leftovers.push(join(this.dir, name));
    }
    return { numbers: numbers.sort((a, b) => a - b), highest, leftovers };
  }

  /** One that is gone already is as good as removed. */
  remove(file: number): Promise<void> {
    return orMissing(this.fileSystem.remove(this.path(file)));
  }

  /** @param path one of the leftovers */
  removeLeftover(path: string): Promise<void> {
    return orMissing(this.fileSystem.remove(path));
  }

  /** Durably. The bytes stay, for whoever wants to look at them. */
  async setAside(file: number): Promise<void> {
    await orMissing(this.fileSystem.rename(this.path(file), join(this.dir, badFileName(this.queue, file))));
    await this.syncDirectory();
  }

  /** Makes the names in the queue's directory durable. */
  syncDirectory(): Promise<void> {
    return this.fileSystem.syncDirectory(this.dir);
  }
}

async function orMissing(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof FileError) || !error.isMissing) throw error;
  }
}
