import { Logger } from '@nestjs/common';
import { backoffMs, ErrorCode, isDeadLetterTopic, MmmqError, type Host, type Turns } from '../core/index.js';
import { deadLetterOf, type DeadLetter } from '../message/index.js';
import type { DispatcherSettings } from '../settings/index.js';
import type { TopicQueue } from '../topic-queue/index.js';
import type { BatchRoom } from './batch-room.js';
import { BatchSender } from './batch.sender.js';
import type { ConsumerClient } from './consumer-client/index.js';
import { transition, WorkerState } from './dispatcher-worker.state.js';
import type { DispatcherRuntime } from './dispatcher.runtime.js';
import { MessageSender } from './message.sender.js';
import type { CorruptEntry, Sender, Sent } from './sender.js';
import { Stopped } from './stopped.js';
import type { ConsumerAnswer, ImproperVerdict, NackVerdict } from './verdict.js';

/** The dispatcher that a worker works for. */
export interface WorkerOptions extends Pick<DispatcherSettings, 'name' | 'timeoutMs' | 'maxResends' | 'backoff' | 'batch'> {
  readonly host: Host;
}

/** What bounds the workers of a dispatcher together. */
export interface WorkerBounds {
  readonly turns: Turns;
  readonly batchRoom: BatchRoom;
}

/** What a worker needs of its topic queue. */
type DispatchedTopicQueue = Pick<TopicQueue, 'topic' | 'count' | 'read' | 'onArrival' | 'committed' | 'commit'>;

/** What a worker has done since it was made. */
export interface WorkerCounters {
  /** Messages that the consumer answered with ACK. */
  delivered: number;
  /** Messages that became dead letters. */
  deadLettered: number;
  /** Messages of a `dlq.` topic that were refused in the end and stayed there. */
  passed: number;
  /** Entries whose bytes do not fit their checksum. */
  skippedCorrupt: number;
  /** NACK answers. */
  nacked: number;
  /** Attempts that brought no proper answer. */
  improper: number;
}

/** How a message ended. */
type Outcome = 'delivered' | 'deadLettered' | 'passed' | 'skippedCorrupt';

/** The consumer will not have the message. `cause` is the broker's own account of it, fit for every log. */
interface Refusal extends Pick<DeadLetter, 'attempts' | 'reason' | 'answer'> {
  readonly cause: string;
}

/** What an attempt may lead to. The message is none of it, nor the answer: neither is in memory while a worker waits. */
interface Wait {
  /** The number of the failure in its run, from 1. */
  readonly run: number;
  readonly problem: string;
  readonly longerMs?: number | undefined;
}

/** A dispatcher's subscription of one topic, as it is at the moment. */
export interface Subscription {
  readonly topic: string;
  readonly state: WorkerState;
  /** The next offset to be delivered; undefined until the checkpoint could be read or made. */
  readonly nextOffset: number | undefined;
  readonly counters: Readonly<WorkerCounters>;
  /** What last made the worker wait, at epoch milliseconds `atMs`. It may be over; the state tells. */
  readonly lastProblem: { readonly reason: string; readonly atMs: number } | undefined;
}

/** How long a stop lets the attempt under way, and its commit, come to an end. */
const STOP_GRACE_MS = 5_000;
/** How long a stop waits for an attempt that it has aborted. */
const ABORT_GRACE_MS = 1_000;

/** A run of failures whose waits are the longest already is told of so often: about every ten minutes with the default back-off. */
const LOG_EVERY_RUNS = 10;

/**
 * Delivers one topic to one dispatcher's consumer: in order, one message at a time or one batch, each message at least once.
 *
 * The states are in `WorkerState`. An arrival starts the worker, it ends when the topic is drained, and nothing polls. What it has done is
 * known by the checkpoint alone: it moves, durably, after a message has had its verdict (and after its dead letter is durable), and before
 * anything else is sent. Of a batch, all messages that are acknowledged in front of any other verdict are passed by one move. A crash in between
 * makes what was sent last come again; it never makes a message be missed.
 *
 * Whatever fails is tried again after a wait, without end; nothing is passed over because the disk or the consumer is not there. A worker that
 * waits, or rests, holds no message in memory: thousands of them may wait for one consumer. It reads the message again when its wait is over.
 *
 * The workers of a dispatcher share its turns: no more of them than that read and send at a time. The wait for a turn is none of the
 * attempt's time.
 */
export class DispatcherWorker {
  private readonly logger = new Logger('Dispatcher');
  private readonly counters: WorkerCounters = { delivered: 0, deadLettered: 0, passed: 0, skippedCorrupt: 0, nacked: 0, improper: 0 };
  /** Aborted as soon as the worker is to stop: no wait goes on, no new message is begun. */
  private readonly stopping = new AbortController();
  /** Aborted when the attempt under way has had its time. */
  private readonly aborting = new AbortController();
  /** It has no message in memory in any state but DRAINING, and none while the worker waits for its turn. */
  private readonly sender: Sender;

  private state: WorkerState = WorkerState.IDLE;
  private nextOffset: number | undefined;
  /** How often the message at `nextOffset` got NACK. */
  private nacks = 0;
  /** Attempts without a proper answer since the last proper one. */
  private improperRun = 0;
  private lastProblem: Subscription['lastProblem'];
  private drained: Promise<void> = Promise.resolve();
  private endArrivals: (() => void) | undefined;

  constructor(
    private readonly options: WorkerOptions,
    private readonly topicQueue: DispatchedTopicQueue,
    client: ConsumerClient,
    private readonly runtime: DispatcherRuntime,
    private readonly bounds: WorkerBounds,
  ) {
    const signals = { stopping: this.stopping.signal, aborting: this.aborting.signal };
    const parts = { dispatcher: options, topicQueue, client, clock: runtime.clock, ...signals };
    this.sender = options.batch === undefined ? new MessageSender(parts) : new BatchSender(parts, options.batch, bounds.batchRoom);
  }

  get subscription(): Subscription {
    return {
      topic: this.topicQueue.topic,
      state: this.state,
      nextOffset: this.nextOffset,
      counters: { ...this.counters },
      lastProblem: this.lastProblem,
    };
  }

  /** Subscribes: makes the checkpoint where there is none, delivers what is there and then what arrives. Called once. */
  start(): void {
    this.endArrivals = this.topicQueue.onArrival(() => this.wake());
    this.wake();
  }

  /**
   * Ends waits at once, and gives an attempt under way 5 s to be answered and committed before it is aborted. Bounded, whatever the
   * consumer or the disk does.
   */
  async stop(): Promise<void> {
    this.endArrivals?.();
    this.stopping.abort(new Stopped());
    if (this.state === WorkerState.IDLE) this.enter(WorkerState.STOPPED);
    if (await this.drainedWithin(STOP_GRACE_MS)) return;
    this.aborting.abort();
    if (await this.drainedWithin(ABORT_GRACE_MS)) return;
    this.logger.warn(`${this.at(this.nextOffset)}: did not stop in time and is left behind`);
  }

  private async drainedWithin(ms: number): Promise<boolean> {
    const drained = new AbortController();
    await Promise.race([this.drained.then(() => drained.abort()), this.runtime.clock.sleep(ms, drained.signal)]);
    return drained.signal.aborted;
  }

  private wake(): void {
    if (this.state !== WorkerState.IDLE) return;
    this.enter(WorkerState.DRAINING);
    this.drained = this.drain();
  }

  private async drain(): Promise<void> {
    try {
      const { name } = this.options;
      this.nextOffset ??= await this.insist('the checkpoint cannot be read or made', () => this.topicQueue.committed(name));
      while (this.nextOffset < this.topicQueue.count) {
        const wait = await this.process(this.nextOffset);
        if (wait !== undefined) await this.backOff(wait.run, 'warn', wait.problem, wait.longerMs);
      }
      // Between the last look at the count and this line nothing can arrive: there is no await. An arrival from now on finds IDLE and wakes.
      this.enter(this.stopping.signal.aborted ? WorkerState.STOPPED : WorkerState.IDLE);
    } catch (error) {
      this.enter(WorkerState.STOPPED);
      if (!(error instanceof Stopped)) throw error;
    }
  }

  /**
   * One attempt, and all that follows from it but the wait. The checkpoint moves past what is acknowledged first, then the message behind that
   * has what was said of it. A commit that fails sends nothing again.
   */
  private async process(offset: number): Promise<Wait | undefined> {
    const sent = await this.send(offset);
    if (sent.corrupt !== undefined) {
      await this.commit(offset + 1, this.skip(sent.corrupt));
      return undefined;
    }
    const { count, verdicts } = sent;
    const { acks, other, answer } = verdicts;
    if (acks > 0 || other?.kind === 'nack') this.endImproperRun(offset);
    const next = offset + acks;
    if (acks > 0) await this.commit(next, 'delivered');
    if (other?.kind === 'improper') return this.afterImproper(next, count, other);
    if (other?.kind === 'nack') return await this.afterNack(next, other, answer);
    return undefined;
  }

  private send(offset: number): Promise<Sent> {
    return this.insist('reading failed', () => {
      if (!this.bounds.turns.hasFree) this.sender.letGo();
      return this.bounds.turns.take(() => this.sender.send(offset), { signal: this.stopping.signal });
    });
  }

  private async commit(nextOffset: number, outcome: Outcome): Promise<void> {
    await this.insist('the commit failed', () => this.topicQueue.commit(this.options.name, nextOffset));
    this.counters[outcome] += nextOffset - (this.nextOffset ?? 0);
    this.nextOffset = nextOffset;
    this.nacks = 0;
  }

  private skip(entry: CorruptEntry): Outcome {
    this.logger.error(`${this.at(entry.offset)}: corrupt entry skipped (${entry.corruption})`);
    return 'skippedCorrupt';
  }

  private endImproperRun(offset: number): void {
    if (this.improperRun > 0) {
      this.logger.log(`${this.at(offset)}, attempt ${this.sender.attemptsOf(offset)}: the consumer answers properly again`);
    }
    this.improperRun = 0;
  }

  private afterImproper(offset: number, count: number, { reason, retryAfterMs: longerMs }: ImproperVerdict): Wait {
    // An attempt that the stop itself cut off says nothing about the consumer.
    if (this.aborting.signal.aborted) throw new Stopped();
    this.counters.improper += 1;
    const run = (this.improperRun += 1);
    const attempt = `attempt ${this.sender.attemptsOf(offset)}${count > 1 ? ` with ${count} messages` : ''}`;
    return { run, problem: `${attempt}: no proper answer from ${this.options.host.url(this.sender.path)} (${reason})`, longerMs };
  }

  private async afterNack(offset: number, { retry, reason }: NackVerdict, answer: ConsumerAnswer | undefined): Promise<Wait | undefined> {
    const { maxResends } = this.options;
    const attempts = this.sender.attemptsOf(offset);
    this.counters.nacked += 1;
    const run = (this.nacks += 1);
    if (retry && run <= maxResends) return { run, problem: `attempt ${attempts}: NACK, resend ${run} of ${maxResends} follows` };
    const cause = retry ? `NACK also after ${maxResends} resends` : 'NACK that asks for no resend';
    const outcome = await this.giveUp(offset, { attempts, cause, reason: reason || cause, answer });
    await this.commit(offset + 1, outcome);
    return undefined;
  }

  private async giveUp(offset: number, refusal: Refusal): Promise<Outcome> {
    const { topic } = this.topicQueue;
    if (isDeadLetterTopic(topic)) {
      // A dead letter of a dead letter would go round for ever where a dispatcher reads its own.
      this.logger.error(`${this.at(offset)}, attempt ${refusal.attempts}: ${refusal.cause}; it stays in ${topic} and is passed`);
      return 'passed';
    }
    return await this.insist('the dead letter cannot be written', () => this.keepDeadLetter(offset, refusal));
  }

  /** The message goes to the dead letters, durably, before the checkpoint may pass it. */
  private async keepDeadLetter(offset: number, { cause, ...refusal }: Refusal): Promise<Outcome> {
    const entry = await this.sender.read(offset);
    if (entry.corruption !== undefined) return this.skip(entry);
    const { name: dispatcher } = this.options;
    const deadLetter = deadLetterOf({ ...refusal, dispatcher, topic: this.topicQueue.topic, offset, message: entry.payload });
    const kept = await this.runtime.topicQueues.append(deadLetter);
    this.logger.error(`${this.at(offset)}, attempt ${refusal.attempts}: ${cause}; dead letter at ${kept.topic}, offset ${kept.offset}`);
    return 'deadLettered';
  }

  /**
   * Does it until it succeeds, with a wait after each failure.
   * @throws {Stopped} when the worker is to stop, or when the log is closed: then nothing succeeds any more
   */
  private async insist<T>(failure: string, action: () => Promise<T>): Promise<T> {
    for (let run = 1; ; run += 1) {
      try {
        return await action();
      } catch (error) {
        if (error instanceof Stopped) throw error;
        if (error instanceof MmmqError && error.code === ErrorCode.CLOSED) throw new Stopped();
        await this.backOff(run, 'error', `${failure} (${reasonOf(error)})`);
      }
    }
  }

  /**
   * Waits before the next try, longer with each one of a run. Logs while the wait grows and then every tenth time, so that a run without end
   * neither floods the log nor is forgotten.
   * @param run the number of the failure in its run, from 1
   * @param longerMs what the consumer asked for; lengthens the wait, up to the longest one
   * @throws {Stopped} when the worker is to stop, at once
   */
  private async backOff(run: number, level: 'warn' | 'error', problem: string, longerMs = 0): Promise<void> {
    const { backoff } = this.options;
    const { clock, random } = this.runtime;
    this.lastProblem = { reason: problem, atMs: clock.now() };
    if (this.stopping.signal.aborted) throw new Stopped();

    const waitMs = Math.max(backoffMs(run, backoff, random), backoffMs(1, { initialMs: longerMs, maxMs: backoff.maxMs }, random));
    const isTold = run === 1 || run % LOG_EVERY_RUNS === 0 || backoffMs(run, backoff, () => 0) > backoffMs(run - 1, backoff, () => 0);
    this.logger[isTold ? level : 'debug'](`${this.at(this.nextOffset)}: ${problem}; next try in ${Math.round(waitMs)} ms`);

    this.enter(WorkerState.BACKING_OFF);
    await clock.sleep(waitMs, this.stopping.signal);
    if (this.stopping.signal.aborted) throw new Stopped();
    this.enter(WorkerState.DRAINING);
  }

  private enter(state: WorkerState): void {
    this.state = transition(this.state, state);
    if (state !== WorkerState.DRAINING) this.sender.letGo();
  }

  /** Where the worker is, for the log; never what the message says. */
  private at(offset: number | undefined): string {
    return `dispatcher ${this.options.name}, topic ${this.topicQueue.topic}${offset === undefined ? '' : `, offset ${offset}`}`;
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
