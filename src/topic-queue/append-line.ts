import { type Clock, ENTRY_HEADER_BYTES, ErrorCode, MmmqError, PASS_MAX_BYTES, type TopicLog } from '../core/index.js';
import { type Message, PublishRefusedError } from '../message/index.js';

interface Waiting {
  readonly message: Message;
  readonly resolve: (offset: number) => void;
  readonly reject: (failure: MmmqError) => void;
}

/**
 * The line in front of a topic's log, and its one writer.
 *
 * Messages wait in the order of their arrival. One pass at a time takes what waits, up to `passMaxBytes` of entries, and hands it to the
 * log in one call: all of them share its syncs (group commit), and while a pass is under way the next one fills up by itself.
 */
export class AppendLine {
  readonly #waiting: Waiting[] = [];
  #passing = false;
  #working: Promise<void> = Promise.resolve();

  /** @param onStored is called for every message that became durable, in the order of the log and before its sender hears of it */
  constructor(
    private readonly log: TopicLog,
    private readonly clock: Clock,
    private readonly onStored: (offset: number, message: Message) => void,
    private readonly passMaxBytes = PASS_MAX_BYTES,
  ) {}

  /**
   * Joins the line before this returns.
   * @returns the message's offset, once it is durable
   * @throws {MmmqError} DISK_FULL, APPEND_FAILED, TOPIC_REFUSING, CLOSED, or REFUSED when it is larger than a pass
   */
  join(message: Message): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ message, resolve, reject });
      if (!this.#passing) this.#working = this.#work();
    });
  }

  /** Resolves when all who have joined so far have their answer. */
  idle(): Promise<void> {
    return this.#working;
  }

  async #work(): Promise<void> {
    this.#passing = true;
    // Those that join in the same go, as the messages of a batch do, share the first pass.
    await undefined;
    while (this.#waiting.length > 0) await this.#pass();
    this.#passing = false;
  }

  /** Never throws: whatever happens, everybody in the pass gets an answer and the line moves on. */
  async #pass(): Promise<void> {
    let pass: readonly Waiting[] = this.#waiting;
    try {
      const { taken, payloads } = this.#nextPass();
      pass = taken;
      if (payloads.length === 0) return;
      const { offsets, failure } = await this.log.append(payloads);
      for (const [index, offset] of offsets.entries()) {
        const stored = pass[index] as Waiting;
        this.onStored(offset, stored.message);
        stored.resolve(offset);
      }
      if (offsets.length === pass.length) return;
      const rejection = failure ?? this.#unexpected('the log acknowledged a part of the pass and gave no reason');
      for (const { reject } of pass.slice(offsets.length)) reject(rejection);
    } catch (error) {
      const rejection = this.#unexpected('the append broke off', error);
      for (const { reject } of pass === this.#waiting ? this.#waiting.splice(0) : pass) reject(rejection);
    }
  }

  /** The time stamps are taken here, and not when a message arrives, so that they stand in the order of the log. */
  #nextPass(): { readonly taken: readonly Waiting[]; readonly payloads: readonly Buffer[] } {
    const timestampMs = this.clock.now();
    const taken: Waiting[] = [];
    const payloads: Buffer[] = [];
    let bytes = 0;
    let gone = 0;
    for (const waiting of this.#waiting) {
      const payload = waiting.message.storedBytes(timestampMs);
      const entryBytes = ENTRY_HEADER_BYTES + payload.length;
      if (entryBytes > this.passMaxBytes) {
        waiting.reject(
          new PublishRefusedError(413, undefined, `the message takes ${entryBytes} bytes of the log, more than ${this.passMaxBytes}`),
        );
      } else {
        bytes += entryBytes;
        if (bytes > this.passMaxBytes) break;
        taken.push(waiting);
        payloads.push(payload);
      }
      gone += 1;
    }
    this.#waiting.splice(0, gone);
    return { taken, payloads };
  }

  #unexpected(what: string, cause?: unknown): MmmqError {
    return new MmmqError(
      ErrorCode.APPEND_FAILED,
      `topic ${this.log.topic}: ${what}; the message may or may not be found after a restart, and an id makes it safe to send it again`,
      { cause },
    );
  }
}
