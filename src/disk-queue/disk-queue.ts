import { Logger, type LoggerService } from '@nestjs/common';
import { systemClock, type Clock } from '../core/index.js';
import { NodeFileSystem, type FileSystem } from '../storage/file-system/index.js';
import { DiskQueueClosedError } from './disk-queue-closed.error.js';
import { diskQueueSettings, type DiskQueueOptions, type DiskQueueSettings } from './disk-queue.options.js';
import type { TakenMessage } from './in-flight.window.js';
import { MessageSizeRefusedError } from './message-size-refused.error.js';
import { QueueDirectory } from './queue-directory.js';
import { QueueStore } from './queue-store.js';
import { isMessageLength } from './record.codec.js';
import { TakeLine, type Waiting } from './take-line.js';
import { WorkLine } from './work-line.js';

/** All queues of a process share it: they tell by it that they share a directory. */
const REAL_DISK: FileSystem = new NodeFileSystem();

/** A message that was taken and is removed only once it is confirmed. */
export interface InFlightMessage {
  readonly bytes: Buffer;
  /**
   * Removes the message. Once more does nothing, and so does a queue that was emptied meanwhile.
   * @returns once it counts as removed; durably where `syncEvery` is 1
   * @throws {DiskQueueClosedError} the queue was closed: it gives the message again when it is opened the next time
   * @throws {FileError} the disk failed to sync: the message does not come again before the next start
   */
  confirm(): Promise<void>;
  /** The message is one to be taken again, before those behind it. Nothing where it was confirmed, or given back already. */
  giveBack(): void;
}

/**
 * A first-in, first-out queue of messages in files, of the format of go-diskqueue: what is put outlives the process.
 *
 * As an iterable it takes each message that it gives, waits for the next one, and ends when the queue is closed. Every message is given to one
 * taker, however many there are.
 *
 * What a crash leaves, what is durable when, and what errors there are: docs/disk-queue.md.
 */
export class DiskQueue implements AsyncIterable<Buffer> {
  private readonly work: WorkLine;
  private readonly takers: TakeLine;
  private readonly timer = new AbortController();
  private isTimerRunning = false;
  private isSyncFailing = false;
  private queuedSync: Promise<void> | undefined;
  private backgroundSync: Promise<void> | undefined;
  /** The oldest file that was needed when the last sync began. */
  private oldestFile: number;
  private closing: Promise<void> | undefined;

  private constructor(
    private readonly settings: DiskQueueSettings,
    private readonly store: QueueStore,
    private readonly directory: QueueDirectory,
    private readonly logger: LoggerService,
    private readonly clock: Clock,
  ) {
    this.work = new WorkLine(
      { prepare: (messages) => store.prepare(messages), write: (messages) => this.writeGroup(messages) },
      () => new DiskQueueClosedError(this.name),
    );
    this.oldestFile = store.oldestFile;
    this.takers = new TakeLine(
      store,
      this.work,
      () => this.syncInBackground(),
      () => this.changed(),
    );
    this.changed();
  }

  /**
   * Opens the queue where it ended, or makes it.
   * @throws {InvalidValueError} an option breaks its rule
   * @throws {DiskQueueLockedError} another process has the directory, or this one has opened the queue already
   * @throws {FileError} the disk failed, and can be tried again
   */
  static async open(options: DiskQueueOptions): Promise<DiskQueue> {
    const settings = diskQueueSettings(options);
    const fileSystem = options.fileSystem ?? REAL_DISK;
    const logger = options.logger ?? new Logger('DiskQueue');
    const directory = await QueueDirectory.take(fileSystem, settings.dir, settings.name);
    try {
      const store = await QueueStore.open({ fileSystem, directory, settings, logger });
      await directory.sign();
      return new DiskQueue(settings, store, directory, logger, options.clock ?? systemClock);
    } catch (error) {
      await directory.withdraw().catch(() => undefined);
      throw error;
    }
  }

  get name(): string {
    return this.settings.name;
  }

  /** Messages that were put and not removed; those in flight are among them. */
  get depth(): number {
    return this.store.depth;
  }

  /**
   * Appends a message. Those that are put without waiting for each other are written together, in that order.
   * @param bytes not to be changed before the promise resolves
   * @returns once it is written and can be taken; where `syncEvery` is 1, once it is durable
   * @throws {MessageSizeRefusedError} it is too short or too long
   * @throws {DiskQueueClosedError}
   * @throws {FileError} the disk failed; the message is not in the queue. After a sync that failed and a crash behind it, it may be all the same
   */
  put(bytes: Uint8Array): Promise<void> {
    if (this.closing !== undefined) return Promise.reject(new DiskQueueClosedError(this.name));
    if (isMessageLength(bytes.length, this.settings)) return this.work.write(bytes);
    const { minMessageBytes, maxMessageBytes } = this.settings;
    return Promise.reject(new MessageSizeRefusedError(this.name, bytes.length, minMessageBytes, maxMessageBytes));
  }

  /** @returns the message that would be taken next, or undefined where there is none */
  peek(): Promise<Buffer | undefined> {
    return this.next(() => this.store.peek());
  }

  /**
   * Takes the next message and removes it: it is gone once it was given, but for a crash, which may give again the last ones that were taken.
   * @returns undefined where there is none
   * @throws {FileError} the disk failed to read; nothing is lost, and the next call tries again
   */
  take(): Promise<Buffer | undefined> {
    return this.next(() => this.store.take());
  }

  /**
   * Takes the next message and removes it only when it is confirmed: a crash, or closing the queue, gives it again. Several can be in flight.
   * Those that are confirmed before an older one is come again too after a crash.
   * @returns undefined where there is none
   */
  takeInFlight(): Promise<InFlightMessage | undefined> {
    return this.next(() => this.inFlightMessage());
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Buffer> {
    return this.iterator(() => this.store.take());
  }

  /** Every message as {@link takeInFlight} gives it. Waits for the next one, and ends when the queue is closed. */
  inFlight(): AsyncIterableIterator<InFlightMessage> {
    return this.iterator(() => this.inFlightMessage());
  }

  /** Removes all messages that were put before, those in flight too, durably. */
  async empty(): Promise<void> {
    this.assertOpen();
    await this.work.run(() => this.store.empty());
    this.changed();
  }

  /**
   * Takes no more messages, writes those that wait, makes everything durable, and lets the directory go. What is in flight comes again when the
   * queue is opened the next time. Once more gives the same promise.
   * @throws {FileError} not everything could be made durable; the queue is closed all the same
   */
  close(): Promise<void> {
    return (this.closing ??= this.shutDown());
  }

  private async shutDown(): Promise<void> {
    this.timer.abort();
    await this.takers.close();
    try {
      await this.work.end(() => this.store.close());
    } finally {
      await this.directory.leave();
    }
  }

  private assertOpen(): void {
    if (this.closing !== undefined) throw new DiskQueueClosedError(this.name);
  }

  private async writeGroup(messages: readonly Uint8Array[]): Promise<void> {
    await this.store.write(messages);
    this.takers.wake();
    this.changed();
  }

  private next<T>(use: () => T): Promise<T | undefined> {
    return this.closing === undefined ? this.takers.next(use) : Promise.reject(new DiskQueueClosedError(this.name));
  }

  private iterator<T>(use: () => T): AsyncIterableIterator<T> {
    let waiting: Waiting<T> | undefined;
    let isOver = false;
    const iterator: AsyncIterableIterator<T> = {
      next: async () => {
        if (isOver || this.closing !== undefined) return { done: true, value: undefined };
        waiting = this.takers.waitForNext(use);
        const value = await waiting.answer;
        return value === undefined ? { done: true, value } : { done: false, value };
      },
      return: () => {
        isOver = true;
        waiting?.cancel();
        return Promise.resolve({ done: true, value: undefined });
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  private inFlightMessage(): InFlightMessage {
    const taken = this.store.takeInFlight();
    const { bytes } = taken;
    return {
      bytes,
      confirm: () => this.confirm(taken),
      giveBack: () => {
        if (this.store.giveBack(taken)) this.takers.wake();
      },
    };
  }

  private async confirm(taken: TakenMessage): Promise<void> {
    this.assertOpen();
    this.store.confirm(taken);
    this.changed();
    if (this.store.isSyncDue) await this.queueSync();
  }

  /** Something was put or taken: it is to be synced some time, and files that were left are to go soon. */
  private changed(): void {
    if (this.closing !== undefined) return;
    if (this.store.isSyncWanted || this.store.oldestFile !== this.oldestFile) void this.syncInBackground();
    if (this.store.hasChanges && !this.isTimerRunning) void this.syncLater();
  }

  private async syncLater(): Promise<void> {
    this.isTimerRunning = true;
    await this.clock.sleep(this.settings.syncTimeoutMs, this.timer.signal);
    this.isTimerRunning = false;
    // Not one that has begun: what was put or taken since is to be in it.
    if (!this.timer.signal.aborted) await this.reportedSync();
    this.changed();
  }

  /** Never rejects. */
  private syncInBackground(): Promise<void> {
    this.backgroundSync ??= this.reportedSync().finally(() => {
      this.backgroundSync = undefined;
      this.changed();
    });
    return this.backgroundSync;
  }

  /** Says so when the disk begins to fail, and when it is well again. */
  private async reportedSync(): Promise<void> {
    try {
      await this.queueSync();
      if (this.isSyncFailing) this.logger.log(`disk queue ${this.name}: what was put and taken is durable again`);
      this.isSyncFailing = false;
    } catch (error) {
      if (!this.isSyncFailing) {
        const text = error instanceof Error ? error.message : String(error);
        this.logger.error(`disk queue ${this.name}: what was put and taken cannot be made durable: ${text}. This is tried again`);
      }
      this.isSyncFailing = true;
    }
  }

  /** All who ask before it begins share one. */
  private queueSync(): Promise<void> {
    this.queuedSync ??= this.work.run(async () => {
      this.queuedSync = undefined;
      this.oldestFile = this.store.oldestFile;
      if (this.store.hasChanges) await this.store.sync();
    });
    return this.queuedSync;
  }
}
