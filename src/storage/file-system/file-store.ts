import type { OpenFiles } from './open-files.js';

/** What the stores of segments, offset indexes and checkpoints have in common: existing files, named by path, opened when they are used. */
export abstract class FileStore {
  constructor(protected readonly files: OpenFiles) {}

  /** Runs `work` with the file open all the time: one handle writes and syncs, so that no error of the one is lost to the other. */
  keepOpen<T>(path: string, work: () => Promise<T>): Promise<T> {
    return this.files.use(path, work);
  }

  size(path: string): Promise<number> {
    return this.files.use(path, (file) => file.size());
  }

  sync(path: string): Promise<void> {
    return this.files.use(path, (file) => file.sync());
  }

  truncate(path: string, size: number): Promise<void> {
    return this.files.use(path, (file) => file.truncate(size));
  }

  /** The next use opens the file anew: after an error, or when another file has come under the name. */
  reopen(path: string): void {
    this.files.discard(path);
  }
}
