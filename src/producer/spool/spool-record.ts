import { traceContextOf, type TraceContext } from '../../message/index.js';
import type { OutgoingMessage } from '../outgoing-message.js';

/** What stands before the body of a message in the spool. */
interface RecordHead {
  readonly topic: string;
  readonly id: string;
  readonly trace?: TraceContext | undefined;
}

const LINE_FEED = 0x0a;

/**
 * A message as it lies in the spool: one line of JSON with what is needed to send it, a line feed, and the body, byte for byte as it is sent.
 *
 *     {"topic":"order.created","id":"0197…","trace":{"traceparent":"00-…"}}
 *     {"topic":"order.created","id":"0197…","content":{"orderId":7}}
 */
export function encodeRecord({ topic, id, trace, body }: OutgoingMessage): Buffer {
  const head: RecordHead = { topic, id, trace };
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body]);
}

/** @returns undefined where it is no such record: another program has written it. The body is a view */
export function decodeRecord(record: Buffer): OutgoingMessage | undefined {
  const end = record.indexOf(LINE_FEED);
  if (end === -1) return undefined;
  try {
    const head = JSON.parse(record.toString('utf8', 0, end)) as RecordHead | null;
    if (typeof head?.topic !== 'string' || typeof head.id !== 'string') return undefined;
    const trace = traceContextOf(head.trace?.traceparent, head.trace?.tracestate);
    return { topic: head.topic, id: head.id, trace, body: record.subarray(end + 1) };
  } catch {
    return undefined;
  }
}
