import { backoffMs, type Backoff, type Clock, type Turns } from '../core/index.js';
import { nextBatch } from './next-batch.js';
import { PendingState, type PendingListener, type PendingMessage } from './pending-message.js';
import { ProducerClosedError } from './producer-closed.error.js';
import type { Publisher } from './publisher.js';
import type { Room } from './room.js';
import type { Spool } from './spool/index.js';
import type { Verdict } from './verdict.js';

export interface LineSettings {
  readonly deadlineMs: number;
  readonly lingerMs: number;
  readonly backoff: Backoff;
}

/** What the lines of a producer share. */
export interface LineParts {
  readonly settings: LineSettings;
  readonly publisher: Publisher;
  /** So many requests at a time, over all lines. */
  readonly turns: Turns;
  readonly room: Room;
  readonly spool: Spool | undefined;
  readonly clock: Clock;
}

/**
 * The messages of one topic, in the order of their produces. One request is under way at a time; what is produced meanwhile gathers and goes with
 * the next one. So the order of the calls is that of the log, and what is to be repeated goes before what is newer.
 *
 * With a spool nothing is repeated here: what an attempt leaves unsettled goes to the spool, and all that waits behind it too.
 */
export class TopicLine implements PendingListener {
  /** The next to be sent first. */
  private waiting = new Set<PendingMessage>();
  private sending: readonly PendingMessage[] = [];
  private attemptEnd = new AbortController();
  private wait = new AbortController();
  /** The bytes that have gathered; undefined where the line is not waiting for more. */
  private gatheredBytes: number | undefined;
  private isClosing = false;
  private run: Promise<void> | undefined;

  /** @param onEmpty is called whenever nothing is left in the line */
  constructor(
    private readonly parts: LineParts,
    private readonly onEmpty: () => void,
  ) {}

  /** Never rejects. */
  get ended(): Promise<void> {
    return this.run ?? Promise.resolve();
  }

  join(pending: PendingMessage): void {
    this.waiting.add(pending);
    pending.watch(this.parts.settings.deadlineMs, this);
    this.gathered(pending);
    this.run ??= this.work();
  }

  /**
   * Everything goes to the spool, in order. What is under way goes there as a copy under the same id: the broker stores it once, and nothing that
   * comes behind it can overtake it. Nothing without a spool.
   */
  divert(): void {
    const { spool } = this.parts;
    if (spool === undefined) return;
    for (const pending of this.sending) if (pending.state === PendingState.SENDING) void pending.spoolWith(spool.put(pending.message));
    this.empty(spool);
    this.endAttemptOfNobody();
  }

  /** Nothing is repeated any more, and no wait is waited. */
  close(): void {
    this.isClosing = true;
    this.wait.abort();
  }

  /** Ends what is left: to the spool with it, or else it fails. */
  giveUp(): void {
    this.divert();
    for (const pending of [...this.sending, ...this.waiting]) {
      if (pending.state === PendingState.SENDING || pending.state === PendingState.WAITING) {
        const { topic, id } = pending.message;
        pending.giveUp('the producer was closed', new ProducerClosedError(topic, id));
      }
    }
  }

  onDeadline(pending: PendingMessage): void {
    if (pending.state === PendingState.SPOOLING) return;
    if (this.parts.spool !== undefined) this.divert();
    else if (pending.state === PendingState.SENDING) this.expire(pending);
    else pending.fail();
  }

  onAbort(pending: PendingMessage): void {
    if (pending.state !== PendingState.SPOOLING) pending.giveUp('its signal was aborted', pending.abortReason);
  }

  onSettled(pending: PendingMessage): void {
    this.parts.room.giveBack(pending.message.body);
    if (this.waiting.delete(pending)) {
      if (this.waiting.size === 0) this.wait.abort();
    } else if (this.sending.length > 0) this.endAttemptOfNobody();
  }

  /**
   * The attempt is ended where nobody else waits for it, and then it says whether it was written. Those that were produced together have their
   * deadlines together, so this is for all of them.
   */
  private expire(pending: PendingMessage): void {
    pending.expire();
    setImmediate(() => {
      if (pending.state !== PendingState.SENDING) return;
      if (this.sending.every(({ state, isExpired }) => state !== PendingState.SENDING || isExpired)) this.attemptEnd.abort();
      else pending.fail();
    });
  }

  private async work(): Promise<void> {
    const { settings, turns } = this.parts;
    // So that all that one piece of code produces in a row is there.
    await Promise.resolve();
    if (settings.lingerMs > 0) await this.gather(settings.lingerMs);
    let failures = 0;
    while (this.waiting.size > 0) {
      const { isUnsettled, retryAfterMs } = await turns.take(() => this.attempt());
      failures = isUnsettled ? failures + 1 : 0;
      if (!isUnsettled || this.waiting.size === 0) continue;
      await this.rest(Math.max(backoffMs(failures, settings.backoff), Math.min(retryAfterMs, settings.deadlineMs)));
    }
    this.run = undefined;
    this.onEmpty();
  }

  private async gather(lingerMs: number): Promise<void> {
    this.gatheredBytes = 0;
    for (const pending of this.waiting) this.gathered(pending);
    if (!this.isFull()) await this.rest(lingerMs);
    this.gatheredBytes = undefined;
  }

  private gathered({ message }: PendingMessage): void {
    if (this.gatheredBytes === undefined) return;
    this.gatheredBytes += message.body.length;
    if (this.isFull()) this.wait.abort();
  }

  private isFull(): boolean {
    const { maxMessages, maxBytes } = this.parts.publisher.limits;
    return this.waiting.size >= maxMessages || (this.gatheredBytes ?? 0) >= maxBytes;
  }

  private async rest(ms: number): Promise<void> {
    if (this.isClosing) return;
    this.wait = new AbortController();
    await this.parts.clock.sleep(ms, this.wait.signal);
  }

  /** Never rejects. */
  private async attempt(): Promise<{ readonly isUnsettled: boolean; readonly retryAfterMs: number }> {
    const { publisher } = this.parts;
    const batch = nextBatch(this.waiting, publisher.limits);
    // All have left while the turn was waited for.
    if (batch.length === 0) return { isUnsettled: false, retryAfterMs: 0 };
    for (const pending of batch) {
      this.waiting.delete(pending);
      pending.send();
    }
    this.sending = batch;
    this.attemptEnd = new AbortController();
    const verdicts = await publisher.publish(
      batch.map(({ message }) => message),
      this.attemptEnd.signal,
    );
    this.sending = [];
    const open = batch.filter((pending, place) => pending.state === PendingState.SENDING && this.isOpen(pending, verdicts[place]));
    const unsettled = verdicts.filter((verdict) => verdict.kind === 'unsettled');
    this.putBack(open, unsettled.length > 0);
    return { isUnsettled: unsettled.length > 0, retryAfterMs: Math.max(0, ...unsettled.map(({ retryAfterMs }) => retryAfterMs)) };
  }

  /** @returns whether the message is not settled */
  private isOpen(pending: PendingMessage, verdict: Verdict | undefined): boolean {
    switch (verdict?.kind) {
      case 'acknowledged':
        pending.acknowledge(verdict.offset);
        return false;
      case 'refused':
        pending.refuse(verdict);
        return false;
      case 'unsettled':
        pending.note(verdict);
        break;
      default:
        pending.returned();
    }
    if (pending.isExpired) pending.fail();
    return !pending.isExpired;
  }

  /** In front of what is newer, or with all of that into the spool. */
  private putBack(open: readonly PendingMessage[], isUnsettled: boolean): void {
    if (open.length === 0) return;
    const { spool } = this.parts;
    this.waiting = new Set([...open, ...this.waiting]);
    if (!isUnsettled) return;
    if (spool !== undefined) this.empty(spool);
    else if (this.isClosing) for (const pending of open) pending.fail();
    else for (const pending of open) pending.repeat();
  }

  private empty(spool: Spool): void {
    const moved = [...this.waiting];
    this.waiting.clear();
    this.wait.abort();
    for (const pending of moved) void pending.spoolWith(spool.put(pending.message));
  }

  /** Nobody asks any more what comes of the request: it keeps the others from their turn. */
  private endAttemptOfNobody(): void {
    if (!this.sending.some(({ state }) => state === PendingState.SENDING)) this.attemptEnd.abort();
  }
}
