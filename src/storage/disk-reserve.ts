import { createCipheriv } from 'node:crypto';
import { join } from 'node:path';
import type { LoggerService } from '@nestjs/common';
import { ErrorCode, MmmqError } from '../core/index.js';
import { FileError, OpenMode, writeFully, type File, type FileSystem } from './file-system/index.js';

/** The leading dot keeps the name out of the alphabet of topics. */
export const RESERVE_FILE_NAME = '.mmmq.reserve';

const CHUNK_BYTES = 64 * 1024;

/**
 * Room that is kept for the time when the disk is full: a file in the data directory that is nothing but its size.
 *
 * A message that producers are refused they still have. A dead letter or the first checkpoint of a dispatcher that cannot be written holds
 * up deliveries. So when one of these finds the disk full, the file is emptied and its room is theirs: from then on producers' messages are
 * refused (507), and the file is filled again as soon as there is room for it twice. Nothing in it is ever read, and whoever removes it takes
 * nothing but the room.
 */
export class DiskReserve {
  private readonly path: string;
  private hasRoom = false;
  private timesGiven = 0;
  /** Something else has its name, or its file cannot be written: then there is none, as with 0 bytes. */
  private isUnusable = false;
  private releasing: Promise<boolean> | undefined;
  private filling: Promise<boolean> | undefined;

  /** @param bytes 0 keeps none: then nothing is ever refused for its sake */
  constructor(
    private readonly fileSystem: FileSystem,
    private readonly logger: LoggerService,
    private readonly rootDir: string,
    private readonly bytes: number,
  ) {
    this.path = join(rootDir, RESERVE_FILE_NAME);
  }

  /** Whether the room is there, or none is kept: producers' messages may take what other room there is. */
  get isWhole(): boolean {
    return this.hasRoom || this.bytes === 0 || this.isUnusable;
  }

  /** Why producers' messages are refused; undefined where they are not. */
  get problem(): MmmqError | undefined {
    if (this.isWhole) return undefined;
    return new MmmqError(
      ErrorCode.DISK_FULL,
      `the disk of ${this.rootDir} is full: what room there is is kept for dead letters and checkpoints until ${2 * this.bytes} bytes are free`,
    );
  }

  /** Brings the file to its size, where there is room for that. Never throws: a reserve that cannot be had keeps no broker from starting. */
  async prepare(): Promise<void> {
    try {
      const size = await this.size();
      if (this.bytes === 0) {
        if (size !== undefined) await this.fileSystem.remove(this.path);
        return;
      }
      this.hasRoom = size === this.bytes;
      if (!this.isWhole && !(await this.fill())) this.logger.warn(`${this.problem?.message}; publishes are refused`);
    } catch (error) {
      this.isUnusable = true;
      this.logger.warn(
        `there is no reserve for dead letters and checkpoints on a full disk (${error instanceof Error ? error.message : String(error)}): ` +
          `move ${this.path} away, or see to it that it can be written, and start again`,
      );
    }
  }

  /** Fills it again where that is due and there is room. Costs nothing while it is whole, and never throws. */
  async refill(): Promise<void> {
    if (this.isWhole) return;
    try {
      if (await this.fill()) this.logger.log(`the disk has room again: ${this.path} is filled, and publishes are taken`);
    } catch (error) {
      this.logger.error(`the reserve cannot be filled: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** Lets a producer's message go on. @throws {MmmqError} DISK_FULL while the room that there is must be left to others */
  async leave(): Promise<void> {
    await this.refill();
    if (this.problem !== undefined) throw this.problem;
  }

  /**
   * Runs what must not wait for room: where it finds the disk full, once more with the reserve's. After a {@link FileError} nothing has
   * happened, and it can be repeated; after any other error the room is there for whoever tries later.
   */
  async use<T>(work: () => Promise<T>): Promise<T> {
    const givenBefore = this.timesGiven;
    try {
      return await work();
    } catch (error) {
      const isDiskFull = error instanceof MmmqError && error.code === ErrorCode.DISK_FULL;
      if (!isDiskFull || !(await this.isGivenFor(error, givenBefore)) || !(error instanceof FileError)) throw error;
      return work();
    }
  }

  /** Gives the room to work that failed for want of it, unless it was given to others while that work ran: then it is there already. */
  private async isGivenFor(error: MmmqError, givenBefore: number): Promise<boolean> {
    const isThereAlready = (): boolean => this.timesGiven > givenBefore;
    if (isThereAlready()) return true;
    const isMissing = await this.isBytesThatAreMissing(error);
    return isThereAlready() || (isMissing && this.release());
  }

  /** A disk without a free inode is full as well, and no room in bytes helps; a quota does not show in what is free. */
  private async isBytesThatAreMissing(error: MmmqError): Promise<boolean> {
    const cause = error instanceof FileError ? error : error.cause;
    if (cause instanceof FileError && cause.errno === 'EDQUOT') return true;
    return (await this.fileSystem.room(this.rootDir)).bytes < 2 * this.bytes;
  }

  /** Shared by all who need it at the same time. @returns whether room was given */
  private release(): Promise<boolean> {
    if (!this.hasRoom) return this.releasing ?? Promise.resolve(false);
    this.hasRoom = false;
    this.releasing = this.giveRoom().finally(() => (this.releasing = undefined));
    return this.releasing;
  }

  private async giveRoom(): Promise<boolean> {
    try {
      await this.withFile(OpenMode.EXISTING, async (file) => {
        await file.truncate(0);
        // Some file systems give the room to others only with this.
        await file.sync();
      });
      this.timesGiven += 1;
      this.logger.warn(
        `the disk is full: the ${this.bytes} bytes of ${this.path} are given to dead letters and checkpoints, and publishes are refused`,
      );
      return true;
    } catch (error) {
      this.logger.error(`the disk is full and the reserve cannot be given: ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
  }

  private fill(): Promise<boolean> {
    this.filling ??= this.takeRoom().finally(() => (this.filling = undefined));
    return this.filling;
  }

  private async takeRoom(): Promise<boolean> {
    // For it twice: filling it must not take the last room there is from those whom it is kept for.
    if ((await this.fileSystem.room(this.rootDir)).bytes < 2 * this.bytes) return false;
    try {
      await this.withFile(OpenMode.EXISTING_OR_NEW, (file) => this.write(file));
    } catch (error) {
      if (!(error instanceof FileError) || !error.isDiskFull) throw error;
      await this.withFile(OpenMode.EXISTING, (file) => file.truncate(0));
      return false;
    }
    this.hasRoom = true;
    return true;
  }

  /** Bytes that no file system compresses, or leaves out as it does with zeros. */
  private async write(file: File): Promise<void> {
    const noise = createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16));
    await file.truncate(0);
    for (let position = 0; position < this.bytes; position += CHUNK_BYTES) {
      await writeFully(file, noise.update(Buffer.alloc(Math.min(CHUNK_BYTES, this.bytes - position))), position);
    }
    await file.sync();
  }

  /** @returns undefined where there is no file */
  private async size(): Promise<number | undefined> {
    try {
      return await this.withFile(OpenMode.EXISTING, (file) => file.size());
    } catch (error) {
      if (error instanceof FileError && error.isMissing) return undefined;
      throw error;
    }
  }

  private async withFile<T>(mode: OpenMode, work: (file: File) => Promise<T>): Promise<T> {
    const file = await this.fileSystem.open(this.path, mode);
    return work(file).finally(() => file.close());
  }
}
