import { readStored } from '../message/index.js';

/** Which send of which message this is; of a batch, its first message. */
export interface Delivery {
  readonly dispatcher: string;
  readonly topic: string;
  readonly offset: number;
  /** From 1; counts every send of this message since the start of the process. */
  readonly attempt: number;
}

/** The headers of every delivery. */
export function deliveryHeaders(delivery: Delivery): Record<string, string> {
  return {
    'content-type': 'application/json',
    'mmmq-dispatcher': delivery.dispatcher,
    'mmmq-topic': delivery.topic,
    'mmmq-offset': String(delivery.offset),
    'mmmq-attempt': String(delivery.attempt),
  };
}

/**
 * The further headers of one message. What they say is read from its stored bytes, and only as far as it keeps the rules of a publish: a message
 * that another program wrote cannot break its own request. The body has all of it.
 *
 * @param payload the stored message
 */
export function messageHeaders(payload: Buffer): Record<string, string> {
  const headers: Record<string, string> = {};
  const message = readStored(payload);
  if (message?.id !== undefined) headers['mmmq-message-id'] = message.id;
  if (message?.key !== undefined) headers['mmmq-key'] = percentEncoded(message.key);
  for (const [name, value] of message?.headers ?? []) headers[`mmmq-header-${name}`] = percentEncoded(value);
  if (message?.traceparent !== undefined) headers['traceparent'] = message.traceparent;
  if (message?.tracestate !== undefined) headers['tracestate'] = message.tracestate;
  return headers;
}

/** The further headers of a batch: how many messages it has. */
export function batchHeaders(count: number): Record<string, string> {
  return { 'mmmq-count': String(count) };
}

/** Space, `"`, `%` and what is not printable ASCII become `%XX` per byte of their UTF-8, as in the CloudEvents HTTP binding (3.1.3.2). */
function percentEncoded(value: string): string {
  return value.replace(/[^\x21\x23\x24\x26-\x7e]+/g, (run) => {
    let encoded = '';
    for (const byte of Buffer.from(run, 'utf8')) encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    return encoded;
  });
}
