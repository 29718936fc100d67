import type { LogEntry } from '../core/index.js';
import { isJson } from '../message/index.js';
import type { DispatcherBatch } from '../settings/index.js';
import type { BatchRoom } from './batch-room.js';
import { batchVerdictsOf } from './batch-verdicts.js';
import type { ConsumerReply } from './consumer-client/index.js';
import { batchHeaders } from './delivery-headers.js';
import { MAX_ANSWER_BYTES } from './message.sender.js';
import { Sender, type CorruptEntry, type Parcel, type Sent, type SenderParts } from './sender.js';
import type { Verdicts } from './verdict.js';

/** An answer to a batch may have so many bytes for each message behind the first. */
const ANSWER_BYTES_PER_FURTHER_MESSAGE = 512;

/** So many improper answers in a row are the consumer's; from then on the size of the batch may be to blame. */
const IMPROPER_BEFORE_SMALLER = 3;

const OPENING = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSING = Buffer.from(']');

/**
 * Sends consecutive messages in one request: `POST {host}/messages/batch`, a JSON array of their stored bytes. It takes what is there and
 * never waits for more. A batch ends before a corrupt entry, at the end of a segment, and where the next message would make the body
 * larger than `maxBytes`; its first message comes in any case.
 *
 * A batch that a consumer cannot answer in time, or whose body is too large for it, would come again for ever. So from the third improper
 * answer in a row on each batch has half as many messages as the one before, down to one, and each proper answer doubles them again.
 *
 * No message is held in memory but in the body that is under way, and that within the room of the dispatcher.
 */
export class BatchSender extends Sender {
  readonly path = '/messages/batch';
  private maxMessages: number;
  private improperRun = 0;
  private taken = 0;

  constructor(
    parts: SenderParts,
    private readonly batch: DispatcherBatch,
    private readonly room: BatchRoom,
  ) {
    super(parts);
    this.maxMessages = batch.maxMessages;
  }

  override async send(offset: number): Promise<Sent> {
    try {
      return await super.send(offset);
    } finally {
      this.keepRoom(0);
    }
  }

  async read(offset: number): Promise<LogEntry> {
    const [entry] = await this.readFrom(offset, { maxCount: 1, maxBytes: this.batch.maxBytes });
    return entry;
  }

  letGo(): void {}

  protected async parcelFrom(offset: number): Promise<Parcel | CorruptEntry> {
    this.taken = this.room.take(this.batch.maxBytes);
    const entries = await this.readFrom(offset, { maxCount: this.maxMessages, maxBytes: this.taken });
    const [first] = entries;
    if (first.corruption !== undefined) return first;
    const { body, count } = arrayOf(entries, this.taken);
    this.keepRoom(body.length);
    const maxAnswerBytes = MAX_ANSWER_BYTES + (count - 1) * ANSWER_BYTES_PER_FURTHER_MESSAGE;
    return { path: this.path, headers: batchHeaders(count), body, count, maxAnswerBytes };
  }

  protected verdictsOf(reply: ConsumerReply, count: number): Verdicts {
    const verdicts = batchVerdictsOf(reply, count, this.parts.clock.now());
    const isImproper = verdicts.acks === 0 && verdicts.other?.kind === 'improper';
    this.improperRun = isImproper ? this.improperRun + 1 : 0;
    if (!isImproper) this.maxMessages = Math.min(this.batch.maxMessages, this.maxMessages * 2);
    else if (this.improperRun >= IMPROPER_BEFORE_SMALLER) this.maxMessages = Math.max(1, Math.floor(count / 2));
    return verdicts;
  }

  /** Gives back what it does not need of the room that it took. */
  private keepRoom(bytes: number): void {
    const kept = Math.min(this.taken, bytes);
    this.room.giveBack(this.taken - kept);
    this.taken = kept;
  }
}

/** A JSON array of the messages that fit: the first one, and those behind it up to `maxBytes` or a corrupt one. */
function arrayOf(entries: readonly LogEntry[], maxBytes: number): { readonly body: Buffer; readonly count: number } {
  const parts: Buffer[] = [];
  let bytes = OPENING.length;
  let count = 0;
  for (const { payload } of entries) {
    if (payload === undefined) break;
    const element = jsonOf(payload);
    // With a comma, or the bracket that closes.
    bytes += element.length + 1;
    if (count > 0 && bytes > maxBytes) break;
    parts.push(count === 0 ? OPENING : COMMA, element);
    count += 1;
  }
  parts.push(CLOSING);
  // One buffer: undici writes an iterable of many small ones at twenty times the cost.
  return { body: Buffer.concat(parts), count };
}

/** The stored bytes; where they are no JSON (another program wrote them) as a string, so that they cannot break the array around them. */
function jsonOf(payload: Buffer): Buffer {
  return isJson(payload) ? payload : Buffer.from(JSON.stringify(payload.toString()));
}
