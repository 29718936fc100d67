import type { LoggerService } from '@nestjs/common';
import { FileError, type FileSystem } from '../storage/file-system/index.js';
import { CorruptFileError } from './corrupt-file.error.js';
import { DataFiles } from './data-files.js';
import type { DiskQueueSettings } from './disk-queue.options.js';
import type { FilePosition } from './file-position.js';
import { InFlightWindow, type TakenMessage } from './in-flight.window.js';
import { LeftFiles } from './left-files.js';
import type { Metadata } from './metadata.js';
import { MetadataFile } from './metadata.file.js';
import type { QueueDirectory } from './queue-directory.js';
import { QueueReader } from './queue-reader.js';
import { countRecords, QueueRecovery, type QueueStart } from './queue-recovery.js';
import { QueueWriter } from './queue-writer.js';
import { encodeRecords, LENGTH_BYTES } from './record.codec.js';
import { TailFile } from './tail.file.js';

/** What one write takes at most, but for a single message that has more. */
const GROUP_MAX_BYTES = 1024 * 1024;
/** Bytes that were not synced are kept in memory: beyond so many they are synced before others are written. */
const MAX_UNSYNCED_BYTES = 16 * 1024 * 1024;

export interface QueueStoreParts {
  readonly fileSystem: FileSystem;
  readonly directory: QueueDirectory;
  readonly settings: DiskQueueSettings;
  readonly logger: LoggerService;
}

/**
 * The owner of all that a queue knows and has on the disk.
 *
 * Layout: see file-name.ts, record.codec.ts, metadata.ts and tail.file.ts.
 *
 * Invariants:
 * - what is before the write position of the durable metadata is durable, and no data file exists that it does not name;
 * - a file is removed after the durable metadata has left it, and set aside before;
 * - at most `syncEvery` messages were put or removed since the durable metadata, where the disk is well;
 * - what is read was written, is not taken back any more, and is trusted to be on the disk or on its way there.
 *
 * What changes the disk (`write`, `sync`, `skipFile`, `empty`, `close`) runs one at a time; the caller sees to that. Taking changes only
 * memory, and may happen meanwhile.
 *
 * A crash leaves the durable metadata, the records that it knows, and of those behind it what the tail proves. See queue-recovery.ts.
 */
export class QueueStore {
  private readonly window = new InFlightWindow();
  private messageCount: number;
  /** Messages put and removed, and other reasons to write the metadata, since the durable metadata. */
  private changes: number;
  /** Messages removed since the durable metadata: a crash gives them again. */
  private removals = 0;
  /** How many of either there may be. More where the last sync failed: a disk that does not sync keeps nobody from taking. */
  private maxChanges: number;
  private maxRemovals: number;
  /** How far messages may be read. */
  private shown: FilePosition;
  /** Messages that are written and not shown yet. */
  private hidden = 0;

  private constructor(
    private readonly parts: QueueStoreParts,
    private readonly files: DataFiles,
    private readonly metadata: MetadataFile,
    private readonly tail: TailFile,
    private readonly writer: QueueWriter,
    private readonly reader: QueueReader,
    private readonly left: LeftFiles,
    start: QueueStart,
  ) {
    this.messageCount = start.depth;
    this.changes = start.isKnown && start.stale.length === 0 ? 0 : 1;
    this.maxChanges = this.maxRemovals = parts.settings.syncEvery;
    this.shown = start.write;
  }

  /** Looks at what is there, repairs it, and makes the repair durable where the disk lets it. */
  static async open(parts: QueueStoreParts): Promise<QueueStore> {
    const { fileSystem, settings, logger } = parts;
    const { dir, name } = settings;
    const files = new DataFiles(fileSystem, dir, name);
    const metadata = new MetadataFile(fileSystem, dir, name);
    const tail = new TailFile(fileSystem, dir, name);
    const warn = (message: string): void => logger.warn(`disk queue ${name}: ${message}`);
    const start = await new QueueRecovery(files, metadata, tail, settings, warn).start();
    try {
      await tail.make();
    } catch (error) {
      await tail.close();
      throw error;
    }
    const writer = new QueueWriter(files, tail, start.write, start.isMade);
    const left = new LeftFiles(files, warn, start.stale);
    const reader = new QueueReader(files, settings, start.read, [...start.later], left);
    const store = new QueueStore(parts, files, metadata, tail, writer, reader, left, start);
    // On a full disk, say: what is there can be read all the same, and the next sync tries again.
    if (store.changes > 0)
      await store.sync().catch((error: unknown) => store.warn(`what was found could not be written down: ${text(error)}`));
    return store;
  }

  /** Messages that were put and not removed. Metadata of somebody else may have said less than there were. */
  get depth(): number {
    return Math.max(this.messageCount, this.window.count);
  }

  get hasChanges(): boolean {
    return this.changes > 0;
  }

  /** Whether it is time for a sync. */
  get isSyncWanted(): boolean {
    return this.changes >= this.maxChanges;
  }

  /** Whether it has to come before more messages are removed. */
  get isSyncDue(): boolean {
    return this.removals >= this.maxRemovals;
  }

  /** Whether there is a message behind those that were taken. */
  get hasNext(): boolean {
    const { cursor } = this.reader;
    return cursor.file < this.shown.file || cursor.position < this.shown.position;
  }

  /** All files before this one can go, once the metadata says so. */
  get oldestFile(): number {
    return this.removedTo.file;
  }

  /**
   * Sees to it that there is a file for the next messages, and that they may be written.
   * @returns how many of them go into the next write
   */
  async prepare(messages: readonly Uint8Array[]): Promise<number> {
    const { writer } = this;
    const { syncEvery, maxBytesPerFile } = this.parts.settings;
    const bytes = LENGTH_BYTES + (messages[0]?.length ?? 0);
    // Metadata that may have come to the disk may know what was taken back: nothing else is written there before that is settled.
    const mustSync = this.changes >= syncEvery || writer.unsyncedBytes + bytes > MAX_UNSYNCED_BYTES || !this.metadata.isCertain;
    if (mustSync) await this.sync();
    if (writer.position > 0 && writer.position + bytes > maxBytesPerFile) {
      await writer.sync();
      this.moveOn();
    }
    if (!writer.isMade) {
      // The metadata names the file before it is there: behind a crash nobody would look for it.
      if (this.metadata.durable?.write.file !== writer.file) await this.sync();
      await writer.make();
    }
    return this.countOfGroup(messages);
  }

  /** Writes as many messages as {@link prepare} has said. When this throws, none of them is there. */
  async write(messages: readonly Uint8Array[]): Promise<void> {
    const { position } = this.writer;
    const { syncEvery } = this.parts.settings;
    const bytes = messages.reduce((sum, { length }) => sum + LENGTH_BYTES + length, 0);
    await this.writer.append(encodeRecords(messages, bytes), this.changes + messages.length >= syncEvery);
    this.changes += messages.length;
    this.hidden = messages.length;
    try {
      if (this.changes >= syncEvery) await this.sync();
    } catch (error) {
      this.changes -= messages.length;
      await this.writer.takeBackTo(position);
      throw error;
    } finally {
      this.hidden = 0;
    }
    this.messageCount += messages.length;
    this.shown = { file: this.writer.file, position: this.writer.position };
  }

  /** Makes everything durable that was put and removed: the data, then the metadata; then the files go that nobody needs. */
  async sync(): Promise<void> {
    try {
      await this.parts.directory.assertHeld();
      await this.writer.sync();
      await this.left.setAsideBefore(this.removedTo);
      const { file, position } = this.writer;
      const { changes, removals } = this;
      // From the read position on: with those that come again as they were confirmed behind one that is in flight.
      const depth = this.depth + this.window.confirmedBehind + this.hidden;
      await this.replaceMetadata({ depth, read: this.left.upTo(this.removedTo), write: { file, position } });
      this.changes -= changes;
      this.removals -= removals;
      this.maxChanges = this.maxRemovals = this.parts.settings.syncEvery;
      this.tail.restart();
    } catch (error) {
      this.maxChanges = this.changes + this.parts.settings.syncEvery;
      this.maxRemovals = this.removals + this.parts.settings.syncEvery;
      throw error;
    }
    if (this.metadata.durable !== undefined) await this.left.removeBefore(this.metadata.durable.read);
  }

  /** Reads on, so that {@link peek} has the next message. @throws {CorruptFileError} when {@link skipFile} has to come first */
  async readAhead(): Promise<void> {
    const { reader, shown } = this;
    await reader.readAhead({ file: shown.file, position: Math.min(shown.position, this.writer.trustedPosition) });
  }

  /** Whether the next message stands where a sync has failed: it has to succeed before that is read. */
  get isNextDoubtful(): boolean {
    const { cursor } = this.reader;
    return cursor.file === this.writer.file && cursor.position >= this.writer.trustedPosition;
  }

  /** Goes on behind a file that cannot be read, and counts what is left. When this throws, it has to be done again. */
  async skipFile({ path, position, message }: CorruptFileError): Promise<void> {
    const { reader } = this;
    const { file } = reader.cursor;
    // The queue may have been emptied meanwhile.
    if (path !== this.files.path(file) || position !== reader.cursor.position) return;
    const [, ...numbers] = reader.filesAhead;
    const left = await countRecords(this.files, { file: numbers[0] ?? file, position: 0 }, numbers, this.shown, this.parts.settings);
    if (file === this.writer.file) this.moveOn();
    if (reader.cursor.file === file) reader.skipFile();
    const lost = this.messageCount - this.window.count - left;
    this.messageCount = this.window.count + left;
    this.changes += 1;
    this.parts.logger.error(
      `disk queue ${this.files.queue}: ${message}. It is kept as ${path}.bad, and ${lost} messages are not delivered`,
    );
  }

  /** The next message, where it was read already. */
  peek(): Buffer | undefined {
    return this.window.next()?.bytes ?? this.reader.peek();
  }

  /** Takes the message that {@link peek} gave. It is there until {@link confirm}. */
  takeInFlight(): TakenMessage {
    const again = this.window.next();
    if (again !== undefined) {
      this.window.takeAgain(again);
      return again;
    }
    const taken = this.window.add(this.reader.cursor, this.next());
    this.settleDepth();
    return taken;
  }

  /** Takes the message that {@link peek} gave, and removes it. */
  take(): Buffer {
    if (this.window.count > 0) {
      const taken = this.takeInFlight();
      const { bytes } = taken;
      this.confirm(taken);
      return bytes;
    }
    const bytes = this.next();
    this.removed();
    return bytes;
  }

  /** Removes a message that was taken; nothing where it is not in flight any more. */
  confirm(taken: TakenMessage): void {
    if (this.window.confirm(taken)) this.removed();
  }

  /** @returns whether the message can be taken again */
  giveBack(taken: TakenMessage): boolean {
    return this.window.giveBack(taken);
  }

  private next(): Buffer {
    const bytes = this.reader.peek();
    if (bytes === undefined) throw new Error('nothing was read ahead');
    this.reader.pass(bytes);
    return bytes;
  }

  private removed(): void {
    this.messageCount -= 1;
    this.changes += 1;
    this.removals += 1;
    this.settleDepth();
  }

  /** Removes all messages, those in flight too. */
  async empty(): Promise<void> {
    this.moveOn();
    this.reader.skipAll();
    this.window.clear();
    this.messageCount = 0;
    this.changes += 1;
    await this.sync();
    if (!this.left.isEmpty) return;
    // The removals are durable before the metadata goes, or the messages would come back.
    await this.files.syncDirectory();
    await this.metadata.remove();
  }

  /** Makes everything durable and lets go of every file, in any case. @throws when it is not all durable */
  async close(): Promise<void> {
    try {
      if (this.changes > 0 || this.metadata.durable === undefined) await this.sync();
      await this.parts.directory.assertHeld();
      await this.tail.close();
      await this.tail.remove().catch((error: unknown) => this.warn(text(error)));
    } finally {
      await Promise.all([this.tail.close(), this.reader.close(), this.writer.close()]);
    }
  }

  /** Before the oldest message that was not taken, or is in flight. */
  private get removedTo(): FilePosition {
    return this.window.start ?? this.reader.cursor;
  }

  /** By bytes alone: where they are more than may stay unsynced, they are synced before anybody hears of them. */
  private countOfGroup(messages: readonly Uint8Array[]): number {
    const { position, unsyncedBytes } = this.writer;
    const maxBytes = Math.min(this.parts.settings.maxBytesPerFile - position, GROUP_MAX_BYTES, MAX_UNSYNCED_BYTES - unsyncedBytes);
    let bytes = 0;
    let count = 0;
    for (const { length } of messages) {
      bytes += LENGTH_BYTES + length;
      if (count > 0 && bytes > maxBytes) break;
      count += 1;
    }
    return count;
  }

  /** Completes the file that is written to, and goes on with a new one. */
  private moveOn(): void {
    const { file, position } = this.writer;
    const next = file + 1;
    this.writer.moveTo(next);
    this.reader.complete({ file, position }, next);
    this.shown = { file: next, position: 0 };
  }

  /** On a full disk a file that nobody needs goes first: a start that misses it goes on with the next. */
  private async replaceMetadata(metadata: Metadata): Promise<void> {
    try {
      await this.metadata.replace(metadata);
    } catch (error) {
      const isHelped =
        error instanceof FileError && error.isDiskFull && this.metadata.isCertain && (await this.left.removeBefore(metadata.read));
      if (!isHelped) throw error;
      await this.metadata.replace(metadata);
    }
  }

  /** Where nothing is left, the depth is what is in flight, whatever the metadata of somebody else has said. */
  private settleDepth(): void {
    if (this.hasNext || this.hidden > 0 || this.messageCount === this.window.count) return;
    this.warn(`its depth was ${this.messageCount} at the end, and is ${this.window.count}`);
    this.messageCount = this.window.count;
    this.changes += 1;
  }

  private warn(message: string): void {
    this.parts.logger.warn(`disk queue ${this.files.queue}: ${message}`);
  }
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
