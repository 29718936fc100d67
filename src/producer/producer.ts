import { Logger, type LoggerService } from '@nestjs/common';
import { systemClock, Turns } from '../core/index.js';
import { activeTrace, type ActiveTrace } from './active-trace.js';
import { NotStoredError } from './not-stored.error.js';
import { Observation } from './observation.js';
import { outgoingMessage, type MessageDetails, type OutgoingMessage, type TraceHeaders } from './outgoing-message.js';
import { PendingMessage } from './pending-message.js';
import { ProducerClosedError } from './producer-closed.error.js';
import { ProducerFullError } from './producer-full.error.js';
import type { ProducerOptions } from './producer.options.js';
import { producerSettings, type ProducerSettings } from './producer.settings.js';
import { Publisher } from './publisher.js';
import type { ProduceResult, Receipt } from './receipt.js';
import { Room } from './room.js';
import { Spool } from './spool/index.js';
import { TopicLine, type LineParts } from './topic-line.js';
import { UndiciTransport, type ProducerTransport } from './transport/index.js';

/** How long `close` waits for what is under way, in milliseconds, as a dispatcher does. */
const CLOSE_GRACE_MS = 5000;

/** What can be said of a message beside topic and content. All of it may be left out. */
export interface ProduceOptions extends MessageDetails, TraceHeaders {
  /** Idempotency key: 1 to 96 of `A-Z a-z 0-9 . _ : -`; a UUIDv7 by default. */
  readonly id?: string | undefined;
  /** Ordering key: 1 to 256 bytes. */
  readonly key?: string | undefined;
  /** At most 64 strings, 4 KiB together, with names of `a-z 0-9 -`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** W3C trace context, handed on as it is; that of OpenTelemetry's active context by default. */
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
  /** Ends the wait. A message that is not under way is not sent any more; one that is may be stored. */
  readonly signal?: AbortSignal | undefined;
}

/** One message of a batch. */
export interface ProduceMessage extends Omit<ProduceOptions, 'signal'> {
  readonly topic: string;
  /** Any JSON value but null, or `rawJson(bytes)`. */
  readonly content: unknown;
}

/** What the parts of a producer are put together from. */
interface Equipment {
  readonly settings: ProducerSettings;
  readonly lineParts: LineParts;
  readonly observation: Observation;
  readonly activeTrace: ActiveTrace;
  /** To be closed with the producer. */
  readonly transport: ProducerTransport | undefined;
  /** What goes straight to the spool, until it is written there. */
  readonly spoolRoom: Room;
}

/**
 * Publishes messages to a broker over HTTP. A receipt says what is durable where; an error says whether the message may be stored all the same.
 * Every message has an id, and every repetition has the same one, so that the broker stores it once.
 *
 * The order of calls for a topic is the order of its log. Topics do not wait for each other.
 */
export class Producer {
  private readonly lines = new Map<string, TopicLine>();
  private closing: Promise<void> | undefined;

  private constructor(private readonly equipment: Equipment) {}

  /**
   * Does not look for the broker: messages can be produced while it is away. Opens the spool, where there is one, and begins to send what is in it.
   * @throws {InvalidValueError} an option breaks its rule
   * @throws {DiskQueueLockedError} another process, or another producer, has the spool
   * @throws {FileError} the spool cannot be opened, and it can be tried again
   */
  static async open(options: ProducerOptions): Promise<Producer> {
    const settings = producerSettings(options);
    const logger: LoggerService = options.logger ?? new Logger('Producer');
    const clock = options.clock ?? systemClock;
    const { timeoutMs, deadlineMs, backoff, connections } = settings;
    // One connection more than there are turns: the sender of the spool needs none of those.
    const own =
      options.transport === undefined
        ? new UndiciTransport(settings.host, { connections: connections + 1, connectTimeoutMs: timeoutMs, agent: options.agent })
        : undefined;
    const publisher = new Publisher(options.transport ?? (own as ProducerTransport), settings, clock);
    const observation = new Observation(options.observer ?? {}, logger);
    const room = new Room(settings.pendingMaxBytes);
    const spoolRoom = new Room(settings.pendingMaxBytes);
    const spoolParts = { backoff, maxRetryAfterMs: deadlineMs, publisher, observation, logger, clock };
    try {
      const spool = settings.spool === undefined ? undefined : await Spool.open({ settings: settings.spool, ...spoolParts });
      const lineParts = { settings, publisher, turns: new Turns(connections), room, spool, clock };
      return new Producer({ settings, lineParts, observation, activeTrace: await activeTrace(), transport: own, spoolRoom });
    } catch (error) {
      await own?.close();
      throw error;
    }
  }

  /** Messages in the spool; 0 without one. */
  get spoolDepth(): number {
    return this.equipment.lineParts.spool?.depth ?? 0;
  }

  /**
   * Publishes a message.
   * @param content any JSON value but null, made JSON at once; or `rawJson(bytes)`
   * @returns the broker's acknowledgement; or, with a spool, that the message is durable here and not acknowledged by the broker
   * @throws {ProduceRefusedError} it breaks a rule, here or at the broker: not stored, and refused again when it is repeated
   * @throws {NotStoredError} the broker could not be reached, or had no room, until the deadline: certainly not stored
   * @throws {ProduceIndeterminateError} it may be stored or not: produce it again under the same id
   * @throws {ProducerFullError} too much waits already: nothing was sent
   * @throws {ProducerClosedError} nothing was sent
   * @throws the signal's reason where it ends the wait and the message is certainly not stored
   */
  produce(topic: string, content: unknown, options: ProduceOptions = {}): Promise<Receipt> {
    try {
      const isTraced = options.traceparent !== undefined;
      const message = outgoingMessage(topic, content, options, isTraced ? options : this.equipment.activeTrace());
      // Behind the content's own toJSON: what is aborted from here on is heard.
      options.signal?.throwIfAborted();
      return this.accept(message, options.signal);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /**
   * Publishes messages, in order for each topic, in as few requests as may be. Each stands or falls alone.
   * @returns one result for each, in order: its receipt, or the error that `produce` would have thrown
   */
  async produceBatch(
    messages: readonly ProduceMessage[],
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<readonly ProduceResult[]> {
    const outcomes = await Promise.allSettled(
      messages.map((message) => this.produce(message.topic, message.content, { ...message, signal })),
    );
    return outcomes.map((outcome) => (outcome.status === 'fulfilled' ? { receipt: outcome.value } : { error: outcome.reason as unknown }));
  }

  /**
   * Takes no more messages, and waits for what is under way, 5 seconds at most. What is left then goes to the spool; without one it fails. What is
   * in the spool is sent when it is opened the next time. Once more gives the same promise.
   * @throws {FileError} the spool could not be made durable; the producer is closed all the same
   */
  close(): Promise<void> {
    return (this.closing ??= this.shutDown());
  }

  private accept(message: OutgoingMessage, signal: AbortSignal | undefined): Promise<Receipt> {
    const { lineParts, observation, settings } = this.equipment;
    const { spool, room } = lineParts;
    const { topic, id, body } = message;
    if (this.closing !== undefined) throw new ProducerClosedError(topic, id);
    if (spool?.holds(topic) === true) return this.spool(spool, message, 'older messages of its topic wait in the spool');
    if (!room.take(body)) {
      if (spool === undefined) throw new ProducerFullError(topic, id, settings.pendingMaxBytes);
      // What is older has to be in front of it.
      this.lines.get(topic)?.divert();
      return this.spool(spool, message, 'the messages that wait for the broker have all of pendingMaxBytes');
    }
    const pending = new PendingMessage(message, observation, signal);
    this.lineOf(topic).join(pending);
    return pending.receipt;
  }

  private async spool(spool: Spool, message: OutgoingMessage, reason: string): Promise<Receipt> {
    const { topic, id, body } = message;
    const { observation, settings, spoolRoom } = this.equipment;
    if (!spoolRoom.take(body)) throw new ProducerFullError(topic, id, settings.pendingMaxBytes);
    try {
      await spool.put(message);
    } catch (error) {
      const why = `${reason}, and the spool did not take it`;
      observation.tell('notStored', { topic, id, source: 'produce', reason: why });
      throw new NotStoredError(topic, id, 0, why, { cause: error });
    } finally {
      spoolRoom.giveBack(body);
    }
    observation.tell('spooled', { topic, id, source: 'produce', reason });
    return { outcome: 'spooled', topic, id };
  }

  private lineOf(topic: string): TopicLine {
    const known = this.lines.get(topic);
    if (known !== undefined) return known;
    const line = new TopicLine(this.equipment.lineParts, () => this.lines.delete(topic));
    this.lines.set(topic, line);
    return line;
  }

  private async shutDown(): Promise<void> {
    const { transport, lineParts } = this.equipment;
    const lines = [...this.lines.values()];
    for (const line of lines) line.close();
    const grace = new AbortController();
    const timer = setTimeout(() => {
      grace.abort();
      for (const line of lines) line.giveUp();
    }, CLOSE_GRACE_MS);
    try {
      await Promise.all(lines.map((line) => line.ended));
      // Behind the lines, as what they could not send goes in.
      await lineParts.spool?.close(grace.signal);
    } finally {
      clearTimeout(timer);
      await transport?.close();
    }
  }
}
