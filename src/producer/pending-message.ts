import { NotStoredError } from './not-stored.error.js';
import { onAbort } from './on-abort.js';
import type { Observation } from './observation.js';
import type { OutgoingMessage } from './outgoing-message.js';
import { ProduceIndeterminateError } from './produce-indeterminate.error.js';
import { ProduceRefusedError, type Refusal } from './produce-refused.error.js';
import type { Receipt } from './receipt.js';
import { isAboutTheMessage, type Unsettled } from './verdict.js';

export const PendingState = {
  /** In the line of its topic, never sent or to be sent again. */
  WAITING: 'waiting',
  /** In the request that is under way. */
  SENDING: 'sending',
  /** On its way into the spool; nothing can call it back. */
  SPOOLING: 'spooling',
  /** The produce has its receipt or its error. What else comes of the message is ignored. */
  SETTLED: 'settled',
} as const;
export type PendingState = (typeof PendingState)[keyof typeof PendingState];

/** What its line does when the message cannot wait any longer. */
export interface PendingListener {
  onDeadline(pending: PendingMessage): void;
  onAbort(pending: PendingMessage): void;
  onSettled(pending: PendingMessage): void;
}

/**
 * A message between its produce and what becomes of it. It remembers what its attempts have left open: once one of them may have stored it, and
 * none behind it has settled that, no error says that it is not stored.
 */
export class PendingMessage {
  readonly receipt: Promise<Receipt>;
  state: PendingState = PendingState.WAITING;
  isExpired = false;
  private attempts = 0;
  private mayBeStored = false;
  private reason = 'it has waited in its line for the whole deadline';
  private resolve!: (receipt: Receipt) => void;
  private reject!: (error: unknown) => void;
  private listener: PendingListener | undefined;
  private timer: NodeJS.Timeout | undefined;
  private ignoreSignal: (() => void) | undefined;

  constructor(
    readonly message: OutgoingMessage,
    private readonly observation: Observation,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.receipt = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** @param deadlineMs milliseconds from now on */
  watch(deadlineMs: number, listener: PendingListener): void {
    this.listener = listener;
    this.timer = setTimeout(() => listener.onDeadline(this), deadlineMs);
    if (this.signal !== undefined) this.ignoreSignal = onAbort(this.signal, () => listener.onAbort(this));
  }

  send(): void {
    this.state = PendingState.SENDING;
    this.attempts += 1;
  }

  /** The attempt is over, and the broker has looked at nothing. */
  returned(): void {
    this.state = PendingState.WAITING;
  }

  /** The attempt is over, and has settled nothing. */
  note({ mayBeStored, reason }: Unsettled): void {
    this.state = PendingState.WAITING;
    this.mayBeStored ||= mayBeStored;
    this.reason = this.isExpired ? `the deadline has passed while an attempt was under way: ${reason}` : reason;
  }

  /** There will be another attempt. */
  repeat(): void {
    this.tell('repeated', { reason: this.reason });
  }

  acknowledge(offset: number): void {
    const { topic, id } = this.message;
    this.tell('acknowledged', { offset });
    this.settle(() => this.resolve({ outcome: 'acknowledged', topic, offset, id }));
  }

  /** A refusal of who asks, behind an attempt that may have stored the message, settles nothing. */
  refuse(refusal: Refusal): void {
    const { topic, id } = this.message;
    const error = new ProduceRefusedError(topic, id, refusal);
    if (this.mayBeStored && !isAboutTheMessage(refusal.status)) {
      this.reason = `refused with ${refusal.status}, behind an attempt that may have stored it`;
      this.fail(error);
      return;
    }
    this.tell('refused', { status: refusal.status });
    this.settle(() => this.reject(error));
  }

  /** No further attempt. What is under way may store it. */
  fail(cause?: unknown): void {
    const { topic, id } = this.message;
    const options = cause === undefined ? undefined : { cause };
    const isUnknown = this.mayBeStored || this.state === PendingState.SENDING;
    const Failure = isUnknown ? ProduceIndeterminateError : NotStoredError;
    this.tell(isUnknown ? 'indeterminate' : 'notStored', { reason: this.reason });
    this.settle(() => this.reject(new Failure(topic, id, this.attempts, this.reason, options)));
  }

  /** The deadline has passed while it was under way: there is no further attempt, and the verdict of this one is still to come. */
  expire(): void {
    this.isExpired = true;
  }

  /** As {@link fail}; where it is certain that it is not stored, with this error. */
  giveUp(reason: string, error: unknown): void {
    if (this.mayBeStored || this.state === PendingState.SENDING) {
      this.reason = reason;
      this.fail(error);
      return;
    }
    this.tell('notStored', { reason });
    this.settle(() => this.reject(error));
  }

  /** Its receipt is the spool's now. Where the spool cannot be written, the error is the one that it would have had without. */
  async spoolWith(put: Promise<void>): Promise<void> {
    // The attempt that is under way goes on, and may store it.
    this.mayBeStored ||= this.state === PendingState.SENDING;
    this.state = PendingState.SPOOLING;
    const { topic, id } = this.message;
    try {
      await put;
    } catch (error) {
      this.fail(error);
      return;
    }
    this.tell('spooled', { reason: this.reason });
    this.settle(() => this.resolve({ outcome: 'spooled', topic, id }));
  }

  /** The reason of a signal that has ended the wait. */
  get abortReason(): unknown {
    return this.signal?.reason;
  }

  private settle(answer: () => void): void {
    if (this.state === PendingState.SETTLED) return;
    this.state = PendingState.SETTLED;
    clearTimeout(this.timer);
    this.ignoreSignal?.();
    answer();
    this.listener?.onSettled(this);
  }

  private tell(name: 'acknowledged', event: { readonly offset: number }): void;
  private tell(name: 'refused', event: { readonly status: number }): void;
  private tell(name: 'indeterminate' | 'notStored' | 'repeated' | 'spooled', event: { readonly reason: string }): void;
  private tell(name: 'acknowledged' | 'refused' | 'indeterminate' | 'notStored' | 'repeated' | 'spooled', event: object): void {
    const { topic, id } = this.message;
    this.observation.tell(name, { topic, id, source: 'produce', ...event } as never);
  }
}
