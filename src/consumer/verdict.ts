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

const READING = new AbortController().signal;

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

/**
 * What was thrown. It may be anything, also what cannot even be looked at (it has no text, a getter of its own throws): then an error that says so,
 * as the message would come again without end if it had no verdict.
 */
export function readable(thrown: unknown): unknown {
  try {
    verdictOf(thrown, READING);
    stackOf(thrown);
    return thrown;
  } catch {
    return new Error('the listener has thrown something that cannot be read');
  }
}

/** For the log. */
export function stackOf(error: unknown): string {
  const stack = (error as { readonly stack?: unknown } | null | undefined)?.stack;
  return typeof stack === 'string' ? stack : reasonOf(error);
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
