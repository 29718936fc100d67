import { jsonElements } from '../message/index.js';
import type { ConsumerReply } from './consumer-client/index.js';
import { failureVerdict, isSuccess, verdictIn, type Verdicts } from './verdict.js';

/**
 * Reads the verdicts on a batch out of what came of its attempt. A 2xx answer whose body is a JSON array of one verdict at least, and not more
 * than there are messages, is proper as far as its elements are: the ACKs that it begins with count, and the first element that is none is the
 * verdict on its message, or makes the answer improper from there on. What stands behind that one is not looked at. An array that ends early
 * says nothing of the messages that it does not come to. Everything else is improper as a whole.
 * @param count how many messages were sent
 * @param nowMs epoch milliseconds, for a `Retry-After` that is a date
 */
export function batchVerdictsOf(reply: ConsumerReply, count: number, nowMs: number): Verdicts {
  if (!isSuccess(reply)) return { acks: 0, other: failureVerdict(reply, nowMs) };
  const { status } = reply;
  const asAWhole = (problem: string): Verdicts => ({ acks: 0, other: { kind: 'improper', reason: `status ${status}, ${problem}` } });
  const elements = jsonElements(reply.body);
  if (elements === undefined) return asAWhole('body is no JSON array in UTF-8');
  if (elements.length === 0) return asAWhole('no verdict in the array');
  if (elements.length > count) return asAWhole(`${elements.length} verdicts on ${count} messages`);

  for (const [acks, element] of elements.entries()) {
    const verdict = verdictIn(element, 'verdict');
    if (verdict.kind === 'nack') return { acks, other: verdict, answer: { status, body: element } };
    if (verdict.kind === 'improper') return { acks, other: { ...verdict, reason: `status ${status}, ${verdict.reason}` } };
  }
  return { acks: elements.length };
}
