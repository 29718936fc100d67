import { InvalidValueError, TopicPattern } from '../core/index.js';

/** What goes wrong on the way to a consumer and back. */
export type ConsumerFault =
  /** Nobody listens: the consumer does not see the request. */
  | { readonly kind: 'refused' }
  /** The consumer gets the request, its signal ends, and whatever it answers comes too late. The clock moves on by the time of the dispatcher. */
  | { readonly kind: 'timeout' }
  /** The consumer handles the request to its end, and the connection is lost before its answer is there. */
  | { readonly kind: 'answerLost' }
  /** Something in between answers with this status, and perhaps with a `Retry-After` in seconds: the consumer does not see the request. */
  | { readonly kind: 'status'; readonly status: number; readonly retryAfterSeconds?: number | undefined }
  /** Something in between answers 200 with a page of its own: the consumer does not see the request. */
  | { readonly kind: 'garbage' };

/** Which requests a fault is for. */
export interface FaultOptions {
  /** So many requests, the next ones; 1 by default. */
  readonly times?: number | undefined;
  /** Only those of topics that this pattern matches; all by default. */
  readonly topic?: string | undefined;
}

const KINDS: ReadonlySet<string> = new Set(['refused', 'timeout', 'answerLost', 'status', 'garbage'] satisfies ConsumerFault['kind'][]);

interface Pending {
  readonly fault: ConsumerFault;
  readonly pattern: TopicPattern | undefined;
  left: number;
}

/** The faults that are still to come, in the order in which they were asked for. */
export class ConsumerFaults {
  private pending: Pending[] = [];

  /** @throws {InvalidValueError} for a fault, a number or a pattern that is none */
  add(fault: ConsumerFault, { times = 1, topic }: FaultOptions = {}): void {
    if (!KINDS.has(fault.kind))
      throw new InvalidValueError('the kind of a fault', String(fault.kind), `must be one of ${[...KINDS].join(', ')}`);
    if (!Number.isSafeInteger(times) || times < 1)
      throw new InvalidValueError('the option times', String(times), 'must be a whole number from 1');
    this.pending.push({ fault, pattern: topic === undefined ? undefined : TopicPattern.of(topic), left: times });
  }

  /** The fault of the next request of this topic, if it has one. */
  take(topic: string): ConsumerFault | undefined {
    const next = this.pending.find(({ pattern }) => pattern?.matches(topic) ?? true);
    if (next === undefined) return undefined;
    next.left -= 1;
    this.pending = this.pending.filter(({ left }) => left > 0);
    return next.fault;
  }
}
