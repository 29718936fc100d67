import { join } from 'node:path';
import { FileError, OpenMode, readFully, writeFully, type FileSystem } from '../storage/file-system/index.js';
import { metadataFileName, temporaryMetadataFileName } from './file-name.js';
import { formatMetadata, parseMetadata, type Metadata } from './metadata.js';

/** Five numbers of at most sixteen digits with what stands between them; what is longer is no metadata. */
const MAX_BYTES = 128;

/**
 * The metadata of a queue: a file that is replaced, never written to. The new one is written beside it and synced, takes its name, and the
 * directory is synced: a crash leaves the old one or the new one, whole.
 */
export class MetadataFile {
  private readonly path: string;
  private readonly temporaryPath: string;
  private current: Metadata | undefined;
  private certain = true;

  constructor(
    private readonly fileSystem: FileSystem,
    private readonly dir: string,
    queue: string,
  ) {
    this.path = join(dir, metadataFileName(queue));
    this.temporaryPath = join(dir, temporaryMetadataFileName(queue));
  }

  /** What is surely durable; undefined where nothing is. */
  get durable(): Metadata | undefined {
    return this.certain ? this.current : undefined;
  }

  /** False after a replacement that failed when the new one may have come to the disk. */
  get isCertain(): boolean {
    return this.certain;
  }

  /** @returns undefined where there is no metadata; `says` is undefined where it is no metadata that is there */
  async read(): Promise<{ readonly says: Metadata | undefined } | undefined> {
    try {
      const file = await this.fileSystem.open(this.path, OpenMode.READING);
      try {
        const bytes = Buffer.alloc(MAX_BYTES);
        const length = await readFully(file, bytes, 0);
        this.current = length === MAX_BYTES ? undefined : parseMetadata(bytes.toString('latin1', 0, length));
        return { says: this.current };
      } finally {
        await file.close();
      }
    } catch (error) {
      if (error instanceof FileError && error.isMissing) return undefined;
      throw error;
    }
  }

  /** When this throws, the old one stands, or, where it is not {@link isCertain}, the new one may. It can be repeated. */
  async replace(metadata: Metadata): Promise<void> {
    const file = await this.fileSystem.open(this.temporaryPath, OpenMode.EXISTING_OR_NEW);
    try {
      // A crash, or an attempt that failed, may have left a longer one.
      await file.truncate(0);
      await writeFully(file, Buffer.from(formatMetadata(metadata), 'latin1'), 0);
      await file.sync();
    } finally {
      await file.close();
    }
    this.certain = false;
    await this.fileSystem.rename(this.temporaryPath, this.path);
    await this.fileSystem.syncDirectory(this.dir);
    this.current = metadata;
    this.certain = true;
  }

  /** Durably: for a queue that has no file any more. */
  async remove(): Promise<void> {
    this.current = undefined;
    await this.fileSystem.remove(this.path);
    await this.fileSystem.syncDirectory(this.dir);
  }
}
