import { join } from 'node:path';
import { FileStore, OpenMode, readFully, writeFully, type FileSystem, type OpenFiles } from '../file-system/index.js';
import { CHECKPOINTS_DIRECTORY, checkpointFileName } from './checkpoint-name.js';

/** One big-endian int64: the next offset that the dispatcher is to read. */
export const CHECKPOINT_BYTES = 8;

/**
 * How far each dispatcher has come in a topic: `<topic>/checkpoints/<dispatcher>.checkpoint`, eight bytes that are overwritten in place.
 *
 * A file is never opened in a way that truncates it, so a crash leaves the old offset or the new one; one that a crash kept from getting its
 * first eight bytes is empty. Anything but eight bytes with an offset in them counts as 0: to deliver again is allowed, to leave out is not.
 */
export class CheckpointStore extends FileStore {
  constructor(
    private readonly fileSystem: FileSystem,
    files: OpenFiles,
  ) {
    super(files);
  }

  /** @returns the offset, or undefined where the file does not hold one */
  read(path: string): Promise<number | undefined> {
    return this.files.use(path, async (file) => {
      // One byte more than there should be shows a file that is too long.
      const bytes = Buffer.alloc(CHECKPOINT_BYTES + 1);
      const length = await readFully(file, bytes, 0);
      const offset = bytes.readBigInt64BE(0);
      return length === CHECKPOINT_BYTES && offset >= 0n ? Number(offset) : undefined;
    });
  }

  /**
   * Makes the dispatcher's checkpoint durable, at offset 0 where there is none: the file's content first, then its name, then the name of its
   * directory. Can be repeated when it throws.
   * @returns the path of the checkpoint
   */
  async make(topicDir: string, dispatcher: string): Promise<string> {
    const directory = join(topicDir, CHECKPOINTS_DIRECTORY);
    const path = join(directory, checkpointFileName(dispatcher));
    await this.fileSystem.makeDirectory(directory);
    const file = await this.fileSystem.open(path, OpenMode.EXISTING_OR_NEW);
    const size = await file.size().finally(() => file.close());
    if (size === 0) await this.write(path, 0);
    await this.fileSystem.syncDirectory(directory);
    await this.fileSystem.syncDirectory(topicDir);
    return path;
  }

  /**
   * Puts a checkpoint at 0 whose file holds no offset. What is there goes first, and is gone for good before anything is written: of eight bytes that
   * are written over others a part alone may come to the disk, or the new size around the old bytes, and would be an offset that nobody committed;
   * an empty file counts as 0 as well.
   */
  reset(path: string): Promise<void> {
    return this.keepOpen(path, async () => {
      await this.truncate(path, 0);
      await this.sync(path);
      await this.write(path, 0);
    });
  }

  /** Overwrites the offset and syncs it. When this throws, the old offset may still stand; the call can be repeated. */
  async write(path: string, nextOffset: number): Promise<void> {
    const bytes = Buffer.alloc(CHECKPOINT_BYTES);
    bytes.writeBigInt64BE(BigInt(nextOffset), 0);
    try {
      await this.files.use(path, async (file) => {
        await writeFully(file, bytes, 0);
        await file.sync();
      });
    } catch (error) {
      // What the kernel remembers of the failure goes with the handle; the next try writes the bytes again, so its sync proves them.
      this.reopen(path);
      throw error;
    }
  }
}
