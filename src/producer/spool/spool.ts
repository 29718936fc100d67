import { join } from 'node:path';
import type { LoggerService } from '@nestjs/common';
import { ErrorCode, MmmqError, type Backoff, type Clock } from '../../core/index.js';
import { DiskQueue, type InFlightMessage } from '../../disk-queue/index.js';
import { NodeFileSystem, type FileSystem } from '../../storage/file-system/index.js';
import type { Observation } from '../observation.js';
import type { OutgoingMessage } from '../outgoing-message.js';
import type { Publisher } from '../publisher.js';
import { DeadFile } from './dead-file.js';
import { HeldTopics } from './held-topics.js';
import { decodeRecord, encodeRecord } from './spool-record.js';
import { SpoolSender } from './spool-sender.js';
import type { SpooledMessage, SpoolSource, UnreadableRecord } from './spool-source.js';

/** The largest message of a broker, 8 MiB, with its head. */
const MAX_RECORD_BYTES = 9 * 1024 * 1024;

export interface SpoolSettings {
  readonly dir: string;
  readonly name: string;
  readonly maxMessages: number;
  readonly fileSystem: FileSystem | undefined;
}

export interface SpoolParts {
  readonly settings: SpoolSettings;
  readonly backoff: Backoff;
  /** A `Retry-After` counts up to so many milliseconds. */
  readonly maxRetryAfterMs: number;
  readonly publisher: Publisher;
  readonly observation: Observation;
  readonly logger: LoggerService;
  readonly clock: Clock;
}

/**
 * Messages that the broker could not take, durable in a disk queue, and the sender that empties it. A message leaves it only when the broker has
 * acknowledged it, or when it is durable in the dead file. A crash between that and its removal sends it once more, under its id.
 */
export class Spool implements SpoolSource {
  private readonly held: HeldTopics;
  private readonly sender: SpoolSender;
  private putting = 0;
  private olderToTake: number;

  private constructor(
    private readonly queue: DiskQueue,
    private readonly parts: SpoolParts,
  ) {
    this.held = new HeldTopics(queue.depth);
    this.olderToTake = queue.depth;
    const { settings, ...others } = parts;
    const dead = new DeadFile(settings.fileSystem ?? new NodeFileSystem(), join(settings.dir, `${settings.name}.dead.ndjson`));
    this.sender = new SpoolSender({ ...others, name: settings.name, spool: this, dead });
  }

  /**
   * Opens the queue, and begins to send what is in it.
   * @throws what `DiskQueue.open` throws
   */
  static async open(parts: SpoolParts): Promise<Spool> {
    const { dir, name, fileSystem } = parts.settings;
    const { logger } = parts;
    const queue = await DiskQueue.open({ dir, name, maxMessageBytes: MAX_RECORD_BYTES, syncEvery: 1, fileSystem, logger });
    const spool = new Spool(queue, parts);
    if (queue.depth > 0) logger.log(`spool ${name}: ${queue.depth} messages are left from before, and are sent now`);
    spool.sender.start(queue.inFlight());
    return spool;
  }

  get depth(): number {
    return this.queue.depth;
  }

  /** Whether newer messages of the topic have to go through the spool, so that they do not overtake. */
  holds(topic: string): boolean {
    return this.held.has(topic);
  }

  /**
   * The order of the calls is that of the messages in the spool.
   * @returns once it is durable
   * @throws {MmmqError} PRODUCER_FULL: it has as many messages as it may have; otherwise what `DiskQueue.put` throws
   */
  async put(message: OutgoingMessage): Promise<void> {
    const { settings, observation } = this.parts;
    if (this.depth + this.putting >= settings.maxMessages)
      throw new MmmqError(
        ErrorCode.PRODUCER_FULL,
        `the spool has the ${settings.maxMessages} messages that it may have (spool.maxMessages)`,
      );
    // From now on, and not only once it is written: what comes behind it has to stay behind it.
    this.held.add(message.topic);
    this.putting += 1;
    try {
      await this.queue.put(encodeRecord(message));
    } catch (error) {
      this.held.remove(message.topic);
      throw error;
    } finally {
      this.putting -= 1;
    }
    observation.tell('spoolDepth', this.depth);
  }

  /** The next one, without waiting. @throws {FileError} the disk failed to read */
  async take(): Promise<SpooledMessage | UnreadableRecord | undefined> {
    const taken = await this.queue.takeInFlight();
    return taken === undefined ? undefined : this.taken(taken);
  }

  /** What the queue has given. Each is to be handed in once, in its order. */
  taken(inFlight: InFlightMessage): SpooledMessage | UnreadableRecord {
    const isOlder = this.olderToTake > 0;
    if (isOlder) this.olderToTake -= 1;
    const message = decodeRecord(inFlight.bytes);
    if (message === undefined) return { record: inFlight.bytes, remove: () => this.remove(inFlight, isOlder, undefined) };
    return { message, remove: () => this.remove(inFlight, isOlder, message.topic) };
  }

  arrivals(): AsyncIterableIterator<InFlightMessage> {
    return this.queue.inFlight();
  }

  /**
   * Takes nothing more and sends nothing more; what it has stays in the files.
   * @param signal ends the attempt that is under way
   */
  async close(signal: AbortSignal): Promise<void> {
    await this.sender.stop(signal);
    await this.queue.close();
  }

  private async remove(inFlight: InFlightMessage, isOlder: boolean, topic: string | undefined): Promise<void> {
    const { logger, settings, observation } = this.parts;
    const confirmed = inFlight.confirm();
    // At once, and not when it is durable: the message has its place in the broker's log, and nothing newer can overtake it any more.
    if (isOlder) this.held.removeOlder();
    else if (topic !== undefined) this.held.remove(topic);
    if (this.queue.depth === 0 && this.putting === 0) this.held.clear();
    observation.tell('spoolDepth', this.depth);
    try {
      await confirmed;
    } catch (error) {
      // It is gone for this process, and a start that finds it again sends it once more.
      logger.warn(`spool ${settings.name}: a removal is not durable yet: ${String(error)}`);
    }
  }
}
