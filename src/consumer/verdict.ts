import { Reject } from './reject.error.js';
import { RetryLater } from './retry-later.error.js';

/** What becomes of a message. */
export type Verdict =
  | { readonly kind: 'ack' }
  /** `retry` is false where the message is given up. */
  | { readonly kind: 'nack'; readonly retry: boolean; readonly reason: string }
  /** It cannot be handled now. `ms` where somebody said how long to wait. */
  | { readonly kind: 'later'; readonly ms?: number; readonly reason: string };

/** A dispatcher keeps no more of a reason. */
const MAX_REASON_LENGTH = 1000;

/**
 * What an error of a listener says of its message.
 * @param signal of the delivery: what fails once it has ended may have failed for that, and costs none of the resends
 */
export function verdictOf(error: unknown, signal: AbortSignal): Verdict {
  const reason = bounded(reasonOf(error));
  if (error instanceof Reject) return { kind: 'nack', retry: false, reason };
  if (error instanceof RetryLater) return { kind: 'later', ms: error.ms, reason };
  if (signal.aborted) return { kind: 'later', reason };
  return { kind: 'nack', retry: true, reason };
}

/** The message of an error, and never its stack, which is nobody's affair out there. */
function reasonOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const { message, name } = error as { message?: unknown; name?: unknown };
  return (
    [message, name].find((text): text is string => typeof text === 'string' && text !== '') ?? 'the listener failed without saying why'
  );
}

function bounded(text: string): string {
  return Array.from(text.slice(0, 2 * MAX_REASON_LENGTH))
    .slice(0, MAX_REASON_LENGTH)
    .join('');
}
