import type { TraceContext } from '../message/index.js';
import type { OutgoingMessage } from './outgoing-message.js';

/** What a request may hold. The first message goes even if it is larger. */
export interface BatchLimits {
  readonly maxMessages: number;
  readonly maxBytes: number;
}

/** Whatever has a message to be sent. */
export interface Sendable {
  readonly message: OutgoingMessage;
}

/**
 * The messages that go with the next request: the oldest first, and of each topic those without a gap, so that nothing overtakes. They share the
 * trace of the first one, as it is a header of the request.
 * @param isStuck topics that the broker did not take the last time: one message of theirs is enough to try
 */
export function nextBatch<T extends Sendable>(
  waiting: Iterable<T>,
  { maxMessages, maxBytes }: BatchLimits,
  isStuck: (topic: string) => boolean = () => false,
): T[] {
  const batch: T[] = [];
  const closed = new Set<string>();
  let bytes = 0;
  for (const sendable of waiting) {
    const { topic, body, trace } = sendable.message;
    if (closed.has(topic)) continue;
    // A line feed behind each.
    bytes += body.length + 1;
    const [first] = batch;
    if (first !== undefined && (batch.length >= maxMessages || bytes > maxBytes)) break;
    if (first !== undefined && !isSameTrace(first.message.trace, trace)) {
      bytes -= body.length + 1;
      closed.add(topic);
      continue;
    }
    batch.push(sendable);
    if (isStuck(topic)) closed.add(topic);
  }
  return batch;
}

function isSameTrace(one: TraceContext | undefined, other: TraceContext | undefined): boolean {
  return one?.traceparent === other?.traceparent && one?.tracestate === other?.tracestate;
}
