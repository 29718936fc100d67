import { join } from 'node:path';
import { crc32c } from '@node-rs/crc32';
import { FileError, OpenMode, readFully, writeFully, type File, type FileSystem } from '../storage/file-system/index.js';
import type { FilePosition } from './file-position.js';
import { tailFileName } from './file-name.js';

/** File, position, length, seed, checksum of the data, checksum of the entry. */
const ENTRY_BYTES = 6 + 6 + 4 + 4 + 4 + 4;
const ENTRY_CRC_AT = ENTRY_BYTES - 4;
const MAX_READ_BYTES = 64 * 1024 * 1024;

/** What was written in one go: that many bytes from there on. */
interface TailEntry extends FilePosition {
  readonly length: number;
  /** The checksum of the entry before it, so that entries stand only in the order in which they were made. */
  readonly seed: number;
  readonly crc: number;
}

/**
 * What proves the records behind the metadata's write position.
 *
 * A data file has no checksums. A power cut may leave any part of what was not synced: a length without its message, zeros, an older
 * sector. So each write to a data file has an entry here, with the checksum of its bytes: a start believes what it proves and cuts the rest.
 * The file is never synced, as an entry that did not come to the disk only proves nothing, and begins anew once the metadata knows the
 * records. It is there from before the first write until the queue is closed; where there is none, go-diskqueue wrote last, and what can be
 * read as records counts as such.
 */
export class TailFile {
  private readonly path: string;
  private file: File | undefined;
  private position = 0;
  private seed = 0;

  constructor(
    private readonly fileSystem: FileSystem,
    private readonly dir: string,
    queue: string,
  ) {
    this.path = join(dir, tailFileName(queue));
  }

  /** @returns the proofs that are there, or undefined where there is no tail file */
  async read(): Promise<TailProofs | undefined> {
    try {
      const file = await this.fileSystem.open(this.path, OpenMode.READING);
      try {
        const bytes = Buffer.alloc(Math.min(MAX_READ_BYTES, await file.size()));
        return new TailProofs(bytes.subarray(0, await readFully(file, bytes, 0)));
      } finally {
        await file.close();
      }
    } catch (error) {
      if (error instanceof FileError && error.isMissing) return undefined;
      throw error;
    }
  }

  /** Durably there, before anything that it is to prove. */
  async make(): Promise<void> {
    this.file = await this.fileSystem.open(this.path, OpenMode.EXISTING_OR_NEW);
    await this.fileSystem.syncDirectory(this.dir);
  }

  /** Writes the entry for bytes that are written at the same time. @returns what {@link accept} is to be called with when both were */
  async prove(at: FilePosition, bytes: Buffer): Promise<number> {
    const crc = crc32c(bytes, this.seed);
    const entry = Buffer.allocUnsafe(ENTRY_BYTES);
    entry.writeUIntBE(at.file, 0, 6);
    entry.writeUIntBE(at.position, 6, 6);
    entry.writeUInt32BE(bytes.length, 12);
    entry.writeUInt32BE(this.seed, 16);
    entry.writeUInt32BE(crc, 20);
    entry.writeUInt32BE(crc32c(entry.subarray(0, ENTRY_CRC_AT)), ENTRY_CRC_AT);
    if (this.file === undefined) throw new FileError('write', this.path, 'EBADF');
    const { position } = this;
    // Also where the data fails: what was taken back must not be proven by an entry that is written over half.
    this.position += ENTRY_BYTES;
    await writeFully(this.file, entry, position);
    return crc;
  }

  /** The entry's bytes are a part of the queue; the next entry stands behind it. */
  accept(crc: number): void {
    this.seed = crc;
  }

  /** The metadata knows all records: the entries are needed no longer. */
  restart(): void {
    this.position = 0;
    this.seed = 0;
  }

  async close(): Promise<void> {
    await this.file?.close();
    this.file = undefined;
  }

  /** Once the metadata knows everything: whoever writes next, go-diskqueue perhaps, proves nothing here. */
  remove(): Promise<void> {
    return this.fileSystem.remove(this.path);
  }
}

/** The entries of a tail file as a crash left them. */
export class TailProofs {
  private readonly entriesAt = new Map<number, TailEntry[]>();

  constructor(bytes: Buffer) {
    for (let at = 0; at + ENTRY_BYTES <= bytes.length; at += ENTRY_BYTES) {
      if (crc32c(bytes.subarray(at, at + ENTRY_CRC_AT)) !== bytes.readUInt32BE(at + ENTRY_CRC_AT)) continue;
      const position = bytes.readUIntBE(at + 6, 6);
      const entries = this.entriesAt.get(position) ?? [];
      entries.push({
        file: bytes.readUIntBE(at, 6),
        position,
        length: bytes.readUInt32BE(at + 12),
        seed: bytes.readUInt32BE(at + 16),
        crc: bytes.readUInt32BE(at + 20),
      });
      this.entriesAt.set(position, entries);
    }
  }

  /**
   * Finds how far the bytes of the file are what was written there, in the order in which it was written, and writes them once more: the process
   * that wrote them may have seen a sync fail, and then only the kernel's memory has them, where another sync does not help.
   * @returns where they end
   */
  async renew(file: File, from: FilePosition, size: number): Promise<number> {
    let { position } = from;
    let seed: number | undefined;
    for (;;) {
      const proven = await this.provenAt(file, { file: from.file, position }, size, seed);
      if (proven === undefined) return position;
      await writeFully(file, proven.bytes, position);
      position += proven.bytes.length;
      seed = proven.crc;
    }
  }

  /** Several may stand for one place: of what was taken back, of an earlier time. Only what is in the file fits its checksum. */
  private async provenAt(
    file: File,
    at: FilePosition,
    size: number,
    seed: number | undefined,
  ): Promise<{ readonly bytes: Buffer; readonly crc: number } | undefined> {
    for (const entry of this.entriesAt.get(at.position) ?? []) {
      const isHere = entry.file === at.file && entry.length > 0 && at.position + entry.length <= size;
      if (!isHere || (seed !== undefined && entry.seed !== seed)) continue;
      const bytes = Buffer.alloc(entry.length);
      const length = await readFully(file, bytes, at.position);
      if (length === entry.length && crc32c(bytes, entry.seed) === entry.crc) return { bytes, crc: entry.crc };
    }
    return undefined;
  }
}
