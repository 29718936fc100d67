import { batchVerdictsOf, type ConsumerReply, type ConsumerRequest, type Verdict, verdictOf } from '../dispatcher/index.js';
import { jsonElements, readStored } from '../message/index.js';

/** A message in an attempt to deliver it, and what came of that. */
export interface TestingDelivery {
  readonly dispatcher: string;
  readonly topic: string;
  readonly offset: number;
  /** From 1. In a batch, that of its first message. */
  readonly attempt: number;
  /** Parsed. */
  readonly content: unknown;
  readonly id: string | undefined;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * `ack`; `nack`, and it comes again or has had its resends; `reject`, a NACK that asks for no resend; `improper`, no answer or none that says anything;
   * `none` for a message of a batch that its answer did not come to.
   */
  readonly verdict: 'ack' | 'nack' | 'reject' | 'improper' | 'none';
  /** Of whatever is not `ack`, where there is one. */
  readonly reason: string | undefined;
}

/** What an attempt was about. Its answer is read as a dispatcher reads it. */
export function deliveriesOf({ path, headers, body }: ConsumerRequest, reply: ConsumerReply, nowMs: number): readonly TestingDelivery[] {
  const isBatch = path.endsWith('/batch');
  const messages = isBatch ? (jsonElements(body) ?? []) : [body];
  const verdicts = isBatch ? batchOf(reply, messages.length, nowMs) : [verdictOf(reply, nowMs)];
  const attempt = Number(headers['mmmq-attempt']);
  const [dispatcher, topic, first] = [String(headers['mmmq-dispatcher']), String(headers['mmmq-topic']), Number(headers['mmmq-offset'])];
  return messages.map((bytes, index) => {
    const message = readStored(bytes);
    return {
      dispatcher,
      topic,
      offset: first + index,
      attempt,
      content: message?.content === undefined ? undefined : (JSON.parse(message.content.toString()) as unknown),
      id: message?.id,
      key: message?.key,
      headers: Object.fromEntries(message?.headers ?? []),
      ...told(verdicts[index]),
    };
  });
}

function batchOf(reply: ConsumerReply, count: number, nowMs: number): readonly Verdict[] {
  const { acks, other } = batchVerdictsOf(reply, count, nowMs);
  return [...Array.from({ length: acks }, (): Verdict => ({ kind: 'ack' })), ...(other === undefined ? [] : [other])];
}

function told(verdict: Verdict | undefined): Pick<TestingDelivery, 'verdict' | 'reason'> {
  if (verdict === undefined) return { verdict: 'none', reason: undefined };
  if (verdict.kind === 'ack') return { verdict: 'ack', reason: undefined };
  const isFinal = verdict.kind === 'nack' && !verdict.retry;
  return { verdict: isFinal ? 'reject' : verdict.kind, reason: verdict.reason };
}
