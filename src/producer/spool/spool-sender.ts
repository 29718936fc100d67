import type { LoggerService } from '@nestjs/common';
import { backoffMs, type Backoff, type Clock } from '../../core/index.js';
import type { InFlightMessage } from '../../disk-queue/index.js';
import { nextBatch } from '../next-batch.js';
import type { Observation } from '../observation.js';
import type { Refusal } from '../produce-refused.error.js';
import type { Publisher } from '../publisher.js';
import { isAboutTheMessage, type Verdict } from '../verdict.js';
import { deadLine, unreadableLine, type DeadFile } from './dead-file.js';
import type { SpooledMessage, SpoolSource, UnreadableRecord } from './spool-source.js';

/** So much of the spool is in memory: more than one request takes, so that a topic that is stuck does not stop the others at once. */
const WINDOW_MESSAGES = 4000;
const WINDOW_BYTES = 8 * 1024 * 1024;

export interface SpoolSenderParts {
  readonly name: string;
  readonly spool: SpoolSource;
  readonly dead: DeadFile;
  readonly backoff: Backoff;
  readonly maxRetryAfterMs: number;
  readonly publisher: Publisher;
  readonly observation: Observation;
  readonly logger: LoggerService;
  readonly clock: Clock;
}

/**
 * Empties the spool, one request at a time, in the order of each topic. It never passes over a message: one that is not settled stays in front of
 * the newer ones of its topic.
 */
export class SpoolSender {
  /** What was taken and is not dealt with, the oldest first. */
  private window: SpooledMessage[] = [];
  private unreadable: UnreadableRecord[] = [];
  private windowBytes = 0;
  /** The topics that the broker did not take the last time. */
  private readonly stuck = new Set<string>();
  private failures = 0;
  /** What it last complained of. */
  private problem: string | undefined;
  private arrivals!: AsyncIterableIterator<InFlightMessage>;
  private running: Promise<void> = Promise.resolve();
  private readonly stopping = new AbortController();
  private readonly attemptEnd = new AbortController();

  constructor(private readonly parts: SpoolSenderParts) {}

  start(arrivals: AsyncIterableIterator<InFlightMessage>): void {
    this.arrivals = arrivals;
    this.running = this.run();
  }

  /**
   * Begins no further attempt, and waits for the one that is under way.
   * @param signal ends that one
   */
  async stop(signal: AbortSignal): Promise<void> {
    this.stopping.abort();
    void this.arrivals.return?.();
    const endAttempt = (): void => this.attemptEnd.abort();
    if (signal.aborted) endAttempt();
    signal.addEventListener('abort', endAttempt);
    await this.running;
    signal.removeEventListener('abort', endAttempt);
  }

  private async run(): Promise<void> {
    const { clock } = this.parts;
    while (!this.stopping.signal.aborted) {
      const waitMs = await this.step().catch((error: unknown) => this.failed(`its files cannot be read: ${String(error)}`));
      if (waitMs > 0) await clock.sleep(waitMs, this.stopping.signal);
    }
  }

  /**
   * Waits for messages, and tries once to send them.
   * @returns how long to wait before the next step, in milliseconds
   */
  private async step(): Promise<number> {
    if (this.window.length === 0 && this.unreadable.length === 0 && !(await this.first())) return 0;
    await this.fill();
    if (this.unreadable.length > 0 && !(await this.buryUnreadable())) return this.failed('its dead file cannot be written');
    if (this.window.length === 0) return 0;
    return this.attempt();
  }

  private async first(): Promise<boolean> {
    try {
      const { done, value } = await this.arrivals.next();
      if (done === true) return false;
      this.add(this.parts.spool.taken(value));
      return true;
    } catch (error) {
      // An iterable ends with its error.
      this.arrivals = this.parts.spool.arrivals();
      throw error;
    }
  }

  private async fill(): Promise<void> {
    while (this.window.length < WINDOW_MESSAGES && this.windowBytes < WINDOW_BYTES && this.unreadable.length < WINDOW_MESSAGES) {
      const taken = await this.parts.spool.take();
      if (taken === undefined) return;
      this.add(taken);
    }
  }

  private add(taken: SpooledMessage | UnreadableRecord): void {
    if ('record' in taken) {
      this.unreadable.push(taken);
      return;
    }
    this.window.push(taken);
    this.windowBytes += taken.message.body.length;
  }

  private async attempt(): Promise<number> {
    const { publisher, observation, clock, maxRetryAfterMs } = this.parts;
    const batch = nextBatch(this.window, publisher.limits, (topic) => this.stuck.has(topic));
    const verdicts = await publisher.publish(
      batch.map(({ message }) => message),
      this.attemptEnd.signal,
    );
    const acknowledged: SpooledMessage[] = [];
    const refused: { readonly spooled: SpooledMessage; readonly refusal: Refusal }[] = [];
    let reason: string | undefined;
    let retryAfterMs = 0;
    for (const [place, spooled] of batch.entries()) {
      const verdict = verdicts[place] as Verdict;
      const { topic, id } = spooled.message;
      if (verdict.kind === 'acknowledged') {
        acknowledged.push(spooled);
        this.stuck.delete(topic);
        observation.tell('acknowledged', { topic, id, source: 'spool', offset: verdict.offset });
      } else if (verdict.kind === 'refused' && isAboutTheMessage(verdict.status)) {
        refused.push({ spooled, refusal: verdict });
      } else if (verdict.kind !== 'apart') {
        // A login that has run out, or an address that is wrong, is no fault of the messages: they wait.
        reason ??= verdict.kind === 'refused' ? `refused with ${verdict.status}: ${verdict.reason}` : verdict.reason;
        if (verdict.kind === 'unsettled') retryAfterMs = Math.max(retryAfterMs, verdict.retryAfterMs);
        this.stuck.add(topic);
        observation.tell('repeated', { topic, id, source: 'spool', reason });
      }
    }
    // Durable in the dead file before it is removed from the spool: a crash in between makes a second line.
    const buried =
      refused.length === 0 ||
      (await this.bury(refused.map(({ spooled: { message }, refusal }) => deadLine(message, refusal, clock.now()))));
    if (buried) this.tellRefused(refused);
    await this.remove([...acknowledged, ...(buried ? refused.map(({ spooled }) => spooled) : [])]);
    if (!buried) {
      for (const { spooled } of refused) this.stuck.add(spooled.message.topic);
      reason ??= 'its dead file cannot be written';
    }
    if (reason === undefined) return this.succeeded();
    // Where something moves, the others need not wait long.
    if (acknowledged.length > 0) this.failures = 0;
    return Math.max(this.failed(reason), Math.min(retryAfterMs, maxRetryAfterMs));
  }

  private async remove(done: readonly SpooledMessage[]): Promise<void> {
    if (done.length === 0) return;
    const gone = new Set(done);
    this.window = this.window.filter((spooled) => !gone.has(spooled));
    for (const { message } of done) this.windowBytes -= message.body.length;
    // Together, so that they share a sync.
    await Promise.all(done.map((spooled) => spooled.remove()));
  }

  private tellRefused(refused: readonly { readonly spooled: SpooledMessage; readonly refusal: Refusal }[]): void {
    const { observation, logger, name, dead } = this.parts;
    for (const { spooled, refusal } of refused) {
      const { topic, id } = spooled.message;
      logger.error(
        `spool ${name}: the message ${id} of ${topic} is refused with ${refusal.status}: ${refusal.reason}. It is in ${dead.path}`,
      );
      observation.tell('refused', { topic, id, source: 'spool', status: refusal.status });
      this.stuck.delete(topic);
    }
  }

  private async buryUnreadable(): Promise<boolean> {
    const { logger, name, dead, clock } = this.parts;
    if (!(await this.bury(this.unreadable.map(({ record }) => unreadableLine(record, clock.now()))))) return false;
    const buried = this.unreadable.splice(0);
    await Promise.all(buried.map((unreadable) => unreadable.remove()));
    logger.error(`spool ${name}: ${buried.length} records are no messages of a producer. They are in ${dead.path}`);
    return true;
  }

  private async bury(lines: readonly Buffer[]): Promise<boolean> {
    const { dead, logger, name } = this.parts;
    try {
      await dead.append(lines);
      return true;
    } catch (error) {
      logger.error(`spool ${name}: ${String(error)}. What was refused stays in the spool; this is tried again`);
      return false;
    }
  }

  private succeeded(): number {
    this.failures = 0;
    if (this.problem !== undefined) this.parts.logger.log(`spool ${this.parts.name}: the broker takes messages again`);
    this.problem = undefined;
    return 0;
  }

  /** @returns the wait before the next step */
  private failed(reason: string): number {
    const { logger, name, spool, backoff } = this.parts;
    this.failures += 1;
    if (this.problem !== reason)
      logger.warn(`spool ${name}: ${spool.depth === 1 ? 'a message waits' : `${spool.depth} messages wait`}: ${reason}`);
    this.problem = reason;
    return backoffMs(this.failures, backoff);
  }
}
