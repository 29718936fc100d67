import type { DataFiles } from './data-files.js';
import type { FilePosition } from './file-position.js';

/** A data file that the reader is through with. */
export interface LeftFile {
  readonly file: number;
  /** Where it could not be read on; undefined where it was read to its end. */
  readonly badAt?: number;
}

/**
 * The data files that the reader has left and that are still there, in that order. A file goes when nothing of it is in flight: it is removed
 * after the durable metadata has left it, and one that could not be read is set aside before. What fails is tried again with the next sync.
 */
export class LeftFiles {
  private left: readonly LeftFile[];

  /** @param stale files before the one that is read, as a start found them */
  constructor(
    private readonly files: DataFiles,
    private readonly warn: (message: string) => void,
    stale: readonly number[],
  ) {
    this.left = stale.map((file) => ({ file }));
  }

  get isEmpty(): boolean {
    return this.left.length === 0;
  }

  add(left: LeftFile): void {
    this.left = [...this.left, left];
  }

  /** How far the metadata may say that all is removed: not beyond a file that has still to be set aside. */
  upTo(position: FilePosition): FilePosition {
    const bad = this.left.find(({ badAt }) => badAt !== undefined);
    return bad?.badAt === undefined || bad.file >= position.file ? position : { file: bad.file, position: bad.badAt };
  }

  /** Durably, so that a crash before the metadata has left them finds a file missing, and goes on with the next. */
  async setAsideBefore({ file }: FilePosition): Promise<void> {
    for (const left of this.left) {
      if (left.badAt === undefined || left.file >= file) continue;
      await this.tried(left, () => this.files.setAside(left.file));
    }
  }

  /** @returns whether there was one */
  async removeBefore({ file }: FilePosition): Promise<boolean> {
    let hasRemoved = false;
    for (const left of this.left) {
      if (left.file >= file) break;
      hasRemoved = (await this.tried(left, () => this.files.remove(left.file))) || hasRemoved;
    }
    return hasRemoved;
  }

  private async tried(left: LeftFile, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
    } catch (error) {
      this.warn(`${error instanceof Error ? error.message : String(error)}; this is tried again`);
      return false;
    }
    this.left = this.left.filter((each) => each !== left);
    return true;
  }
}
