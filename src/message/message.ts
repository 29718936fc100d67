import type { TraceContext } from './trace-context.js';

export interface MessageParts {
  readonly topic: string;
  readonly id: string | undefined;
  /** The exact bytes of the content, a view into `object`. */
  readonly content: Buffer;
  /** The producer's object from brace to brace. It has one member at least. */
  readonly object: Buffer;
  /** The id, when it has to be stored because the object does not have it. */
  readonly addedId?: string | undefined;
  readonly trace?: TraceContext | undefined;
}

/**
 * A message that was accepted. What is stored of it are the producer's own bytes, never a second serialisation: numbers keep their
 * spelling, members their order, and only the broker's members are put in before the closing brace:
 *
 *     {"topic":"order.created","content":{"amount":1.0},"timestamp":1767225600000}
 *
 * in the order `id` (when it came as a header), `traceparent`, `tracestate`, `timestamp`.
 */
export class Message {
  readonly topic: string;
  /** The idempotency key, where the producer gave one. */
  readonly id: string | undefined;
  /** The content's bytes as they came, a view. Two contents are the same when their bytes are. */
  readonly content: Buffer;
  private readonly object: Buffer;
  /** The broker's members, each with its comma in front. ASCII alone: the rules of id and trace context see to it. */
  private readonly addedMembers: string;

  /** @internal */
  constructor({ topic, id, content, object, addedId, trace }: MessageParts) {
    this.topic = topic;
    this.id = id;
    this.content = content;
    this.object = object;
    this.addedMembers = member('id', addedId) + member('traceparent', trace?.traceparent) + member('tracestate', trace?.tracestate);
  }

  /**
   * What goes to the log, in a buffer of its own.
   * @param timestampMs epoch milliseconds of the append
   */
  storedBytes(timestampMs: number): Buffer {
    const tail = `${this.addedMembers},"timestamp":${timestampMs}}`;
    const head = this.object.length - 1;
    const stored = Buffer.allocUnsafe(head + tail.length);
    this.object.copy(stored, 0, 0, head);
    stored.write(tail, head, 'latin1');
    return stored;
  }
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`;
}
