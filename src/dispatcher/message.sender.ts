import type { LogEntry, ReadLimits } from '../core/index.js';
import type { ConsumerReply } from './consumer-client/index.js';
import { messageHeaders } from './delivery-headers.js';
import { Sender, type CorruptEntry, type Parcel } from './sender.js';
import { verdictOf, type Verdicts } from './verdict.js';

/** An answer to one message has so many bytes at most. */
export const MAX_ANSWER_BYTES = 64 * 1024;

/** Read ahead this much where messages flow; each of them is still sent and committed on its own. */
const READ_AHEAD: ReadLimits = { maxCount: 64, maxBytes: 256 * 1024 };
/** While nobody knows whether the consumer is there: one message, which comes whole. */
const READ_ONE: ReadLimits = { ...READ_AHEAD, maxCount: 1 };

/** Sends one message in a request: `POST {host}/messages`, its stored bytes as the body. */
export class MessageSender extends Sender {
  readonly path = '/messages';
  /** The messages in memory, consecutive. */
  private held: readonly LogEntry[] = [];
  /** The message that was sent last, since it let go. */
  private last: number | undefined;

  async read(offset: number): Promise<LogEntry> {
    const held = this.held.find((entry) => entry.offset === offset);
    if (held !== undefined) return held;
    // A message came to its end since the worker last waited or rested.
    const isFlowing = this.last !== undefined && this.last < offset;
    this.held = await this.readFrom(offset, isFlowing ? READ_AHEAD : READ_ONE);
    return this.held[0] as LogEntry;
  }

  letGo(): void {
    this.held = [];
    this.last = undefined;
  }

  protected async parcelFrom(offset: number): Promise<Parcel | CorruptEntry> {
    const entry = await this.read(offset);
    this.last = offset;
    if (entry.corruption !== undefined) return entry;
    const { payload } = entry;
    return { path: this.path, headers: messageHeaders(payload), body: payload, count: 1, maxAnswerBytes: MAX_ANSWER_BYTES };
  }

  protected verdictsOf(reply: ConsumerReply): Verdicts {
    const verdict = verdictOf(reply, this.parts.clock.now());
    if (verdict.kind === 'ack') return { acks: 1 };
    if (verdict.kind === 'improper' || reply.kind === 'failure') return { acks: 0, other: verdict };
    return { acks: 0, other: verdict, answer: { status: reply.status, body: reply.body } };
  }
}
