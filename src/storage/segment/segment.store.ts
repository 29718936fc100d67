import { FileStore, readFully, writeFully } from '../file-system/index.js';

/** The `.mmm` files: entries one behind the other. It knows bytes and positions; which of them count is the offset index's to say. */
export class SegmentStore extends FileStore {
  write(path: string, entries: Buffer, position: number): Promise<void> {
    return this.files.use(path, (file) => writeFully(file, entries, position));
  }

  /** @returns up to `length` bytes from `position`, fewer at the end of the file */
  read(path: string, position: number, length: number): Promise<Buffer> {
    return this.files.use(path, async (file) => {
      const buffer = Buffer.allocUnsafe(length);
      return buffer.subarray(0, await readFully(file, buffer, position));
    });
  }
}
