import { type Clock, ErrorCode, type LogEntry, MmmqError, type ReadLimits, type TopicLog } from '../core/index.js';
import { type Message, PublishRefusedError } from '../message/index.js';
import { AppendLine } from './append-line.js';
import { IdempotencyMemory } from './idempotency-memory.js';
import { type FirstCopy, IDEMPOTENCY_LIMITS, type IdempotencyLimits, IdempotencyWindow } from './idempotency-window.js';
import { TopicQueueState } from './topic-queue.state.js';

export interface TopicQueueOptions {
  readonly clock: Clock;
  /** Shared by all topic queues of a broker. */
  readonly idempotencyMemory: IdempotencyMemory;
  readonly idempotencyLimits?: IdempotencyLimits;
  readonly passMaxBytes?: number;
}

/** A message whose answer waits for the one that came first with the same id. */
interface Waiting {
  readonly message: Message;
  readonly resolve: (offset: number) => void;
  readonly reject: (failure: unknown) => void;
}

interface Unanswered {
  readonly all: Waiting[];
  answered: Promise<void>;
}

/**
 * One topic's messages: append-only, durable, in the order of their arrival, each under an offset that starts at 0 and rises by one.
 *
 * Appends go through one line with one writer; reading needs no lock and sees only what is durable. A message with an id that the topic has
 * seen within the idempotency window is stored once:
 *
 * - no message with this id in the window: it joins the line;
 * - one in the log: the same content is acknowledged with the first offset, other content is refused;
 * - one that is on its way: it waits for that one's outcome, and fails with it;
 * - one in the log that is corrupt: the new one is stored, as nobody can say any more what the first one was.
 */
export class TopicQueue {
  #state: TopicQueueState = TopicQueueState.OPEN;
  readonly #line: AppendLine;
  readonly #window: IdempotencyWindow;
  /** The messages with an id that have no answer yet, by id; the first of each is the one that is judged or stored. */
  readonly #unanswered = new Map<string, Unanswered>();

  /** @internal */
  constructor(
    private readonly log: TopicLog,
    { clock, idempotencyMemory, idempotencyLimits = IDEMPOTENCY_LIMITS, passMaxBytes }: TopicQueueOptions,
  ) {
    this.#window = new IdempotencyWindow(log, idempotencyMemory, idempotencyLimits);
    this.#line = new AppendLine(log, clock, (offset, message) => this.#window.stored(offset, message.id), passMaxBytes);
  }

  get topic(): string {
    return this.log.topic;
  }

  /** How many messages can be read: offsets 0 … count-1. */
  get count(): number {
    return this.log.count;
  }

  get state(): TopicQueueState {
    return this.#state;
  }

  /**
   * Stores a message, or finds the one that was stored under its id.
   * @returns the offset, once the message is durable
   * @throws {PublishRefusedError} 422 when the id stands for other content
   * @throws {MmmqError} DISK_FULL, APPEND_FAILED, TOPIC_REFUSING or CLOSED; IO when the first copy could not be looked at
   */
  append(message: Message): Promise<number> {
    if (this.#state !== TopicQueueState.OPEN) {
      const reason = `topic ${this.topic} takes no more messages: the broker is stopping; send it again later`;
      return Promise.reject(new MmmqError(ErrorCode.CLOSED, reason));
    }
    return message.id === undefined ? this.#line.join(message) : this.#appendOnce(message, message.id);
  }

  /**
   * Stores messages in their order, each as {@link append} does: it stands or falls alone.
   * @returns for each message its offset, or why it was not stored
   */
  async appendAll(messages: readonly Message[]): Promise<PromiseSettledResult<number>[]> {
    // What has to be looked up would be overtaken by what follows it. When it cannot be, each message with an id fails on its own.
    if (!this.#window.isReadBack && messages.some(({ id }) => id !== undefined)) await this.#window.readBack().catch(() => undefined);
    const outcomes: Promise<PromiseSettledResult<number>>[] = [];
    for (const message of messages) {
      const outcome = settled(this.append(message));
      outcomes.push(outcome);
      if (message.id !== undefined && this.#window.find(message.id) !== undefined) await outcome;
    }
    return Promise.all(outcomes);
  }

  #appendOnce(message: Message, id: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const waiting = { message, resolve, reject };
      const others = this.#unanswered.get(id);
      if (others !== undefined) {
        others.all.push(waiting);
        return;
      }
      const all = [waiting];
      const unanswered: Unanswered = { all, answered: Promise.resolve() };
      this.#unanswered.set(id, unanswered);
      unanswered.answered = this.#answer(id, message, all);
    });
  }

  /** Answers all who wait for the id, also those who come while it works. Never throws. */
  async #answer(id: string, first: Message, all: readonly Waiting[]): Promise<void> {
    try {
      const copy = await this.#findOrStore(id, first);
      this.#unanswered.delete(id);
      for (const { message, resolve, reject } of all) {
        if (message.content.equals(copy.content)) resolve(copy.offset);
        else
          reject(
            new PublishRefusedError(422, 'id', `this id was used for other content, at offset ${copy.offset}; give a new message a new id`),
          );
      }
    } catch (failure) {
      this.#unanswered.delete(id);
      for (const { reject } of all) reject(failure);
    }
  }

  /** Joins the line at once when nothing has to be looked up, so that messages of one sender keep their order. */
  async #findOrStore(id: string, message: Message): Promise<FirstCopy> {
    // A loop: while it waited, the window may have been dropped again to make room for other topics.
    while (!this.#window.isReadBack) await this.#window.readBack();
    const offset = this.#window.find(id);
    const copy = offset === undefined ? undefined : await this.#window.firstCopy(offset);
    return copy ?? { offset: await this.#line.join(message), content: message.content };
  }

  /** Consecutive entries from an offset on, at least one where `offset < count`. @throws {MmmqError} code IO: try again */
  read(offset: number, limits: ReadLimits): Promise<readonly LogEntry[]> {
    return this.log.read(offset, limits);
  }

  /** Calls the listener after each rise of `count`. @returns what ends it */
  onArrival(listener: () => void): () => void {
    return this.log.onArrival(listener);
  }

  /** The next offset that the dispatcher is to read; 0 for one that was never seen before. */
  committed(dispatcher: string): Promise<number> {
    return this.log.committed(dispatcher);
  }

  /** Moves the dispatcher to `nextOffset`, durably. */
  commit(dispatcher: string, nextOffset: number): Promise<void> {
    return this.log.commit(dispatcher, nextOffset);
  }

  /** Takes no more messages and waits until those under way have their answer. Called once. */
  async close(): Promise<void> {
    this.#become(TopicQueueState.CLOSING, TopicQueueState.OPEN);
    await Promise.all(Array.from(this.#unanswered.values(), ({ answered }) => answered));
    await this.#line.idle();
    this.#become(TopicQueueState.CLOSED, TopicQueueState.CLOSING);
  }

  #become(next: TopicQueueState, from: TopicQueueState): void {
    if (this.#state !== from) throw new Error(`topic queue ${this.topic} cannot become ${next}: it is ${this.#state}`);
    this.#state = next;
  }
}

function settled<T>(promise: Promise<T>): Promise<PromiseSettledResult<T>> {
  return promise.then(
    (value) => ({ status: 'fulfilled', value }),
    (reason: unknown) => ({ status: 'rejected', reason }),
  );
}
