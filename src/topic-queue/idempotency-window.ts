import type { TopicLog } from '../core/index.js';
import { readStored } from '../message/index.js';
import type { IdempotencyMemory } from './idempotency-memory.js';

/** How far back in a topic an id is remembered. Both limits hold; for the defaults see {@link IDEMPOTENCY_LIMITS}. */
export interface IdempotencyLimits {
  /** A message at offset `o` counts for one that would get offset `n` when `n - o` is at most this. */
  readonly maxCount: number;
  /** … and the entries `o` … `n - 1` take at most so many bytes of the log. */
  readonly maxBytes: number;
}

export const IDEMPOTENCY_LIMITS: IdempotencyLimits = { maxCount: 10_000, maxBytes: 64 * 1024 * 1024 };

/** The message that an id stands for: where it is, and the exact bytes of its content. */
export interface FirstCopy {
  readonly offset: number;
  readonly content: Buffer;
}

const READ_LIMITS = { maxCount: 1000, maxBytes: 1024 * 1024 };
/** The oldest ids are swept out each time the topic has grown by this part of the window, so that a sweep costs next to nothing per message. */
const SWEEPS_PER_WINDOW = 8;

/**
 * The ids of a topic's last messages, and the offsets they stand for.
 *
 * What is known here is only an index of the log: it is read back from there when it is first needed after a start or after
 * {@link drop}, so that an answer is the same before and after. Whether a remembered message still counts, and what its content was, is
 * asked of the log itself each time ({@link firstCopy}); that is exact also where entries of the tail are corrupt.
 */
export class IdempotencyWindow {
  /** Offsets by id, in the order of the offsets. Undefined until it is read back. */
  #ids: Map<string, number> | undefined;
  /** The offset after the last message that is known here. */
  #nextOffset = 0;
  #sweepAtOffset = 0;
  #readingBack: Promise<void> | undefined;

  constructor(
    private readonly log: TopicLog,
    private readonly memory: IdempotencyMemory,
    private readonly limits: IdempotencyLimits = IDEMPOTENCY_LIMITS,
  ) {}

  get isReadBack(): boolean {
    return this.#ids !== undefined;
  }

  /** How many ids are held. */
  get idCount(): number {
    return this.#ids?.size ?? 0;
  }

  /**
   * Reads the ids of the topic's tail. Concurrent calls share one reading.
   * @throws {MmmqError} code IO; the next call tries again
   */
  readBack(): Promise<void> {
    this.#readingBack ??= this.memory
      .oneAtATime(() => this.#readTail())
      .finally(() => {
        this.#readingBack = undefined;
      });
    return this.#readingBack;
  }

  async #readTail(): Promise<void> {
    const ids = new Map<string, number>();
    let next = await this.log.tailOffset(this.limits.maxCount, this.limits.maxBytes);
    // The topic may grow meanwhile. The last look at the count and the lines behind the loop run in one go, so nothing slips between.
    while (next < this.log.count) {
      for (const { offset, payload } of await this.log.read(next, READ_LIMITS)) {
        const id = payload === undefined ? undefined : readStored(payload)?.id;
        if (id !== undefined) remember(ids, id, offset);
        next = offset + 1;
      }
    }
    this.#ids = ids;
    this.#nextOffset = next;
    this.memory.grown(this, ids.size);
    this.#sweep();
  }

  /** Takes note of a message that became durable. Called in the order of the log for every message, also for those without an id. */
  stored(offset: number, id: string | undefined): void {
    if (this.#ids === undefined || offset < this.#nextOffset) return;
    this.#nextOffset = offset + 1;
    if (id !== undefined) {
      const before = this.#ids.size;
      remember(this.#ids, id, offset);
      this.memory.grown(this, this.#ids.size - before);
    }
    if (this.#nextOffset >= this.#sweepAtOffset) this.#sweep();
  }

  /** The offset that the id stands for, as far as the ids tell; what {@link firstCopy} says of it decides. */
  find(id: string): number | undefined {
    this.memory.used(this);
    const offset = this.#ids?.get(id);
    return offset === undefined || this.#nextOffset - offset > this.limits.maxCount ? undefined : offset;
  }

  /**
   * The message at an offset, when it still counts for the next message of the topic and can be read.
   * @returns undefined when it has left the window or is corrupt
   * @throws {MmmqError} code IO
   */
  async firstCopy(offset: number): Promise<FirstCopy | undefined> {
    if (offset < (await this.log.tailOffset(this.limits.maxCount, this.limits.maxBytes))) return undefined;
    const [entry] = await this.log.read(offset, { maxCount: 1, maxBytes: 1 });
    const content = entry?.payload === undefined ? undefined : readStored(entry.payload)?.content;
    return content === undefined ? undefined : { offset, content };
  }

  /** Forgets everything, to make room for other topics. */
  drop(): void {
    this.#ids = undefined;
  }

  #sweep(): void {
    if (this.#ids === undefined) return;
    const before = this.#ids.size;
    for (const [id, offset] of this.#ids) {
      if (this.#nextOffset - offset <= this.limits.maxCount) break;
      this.#ids.delete(id);
    }
    this.memory.grown(this, this.#ids.size - before);
    this.#sweepAtOffset = this.#nextOffset + Math.ceil(this.limits.maxCount / SWEEPS_PER_WINDOW);
  }
}

/** A later copy replaces an earlier one, at the end of the order: it is there only because the earlier one did not count any more. */
function remember(ids: Map<string, number>, id: string, offset: number): void {
  ids.delete(id);
  ids.set(id, offset);
}
