import { Logger } from '@nestjs/common';
import {
  backoffMs,
  ErrorCode,
  isDeadLetterTopic,
  MmmqError,
  type Host,
  type LogEntry,
  type ReadLimits,
  type Turns,
} from '../core/index.js';
import { deadLetterOf, type DeadLetter } from '../message/index.js';
import type { DispatcherSettings } from '../settings/index.js';
import type { TopicQueue } from '../topic-queue/index.js';
import type { ConsumerClient, ConsumerReply } from './consumer-client/index.js';
import { deliveryHeaders } from './delivery-headers.js';
import { transition, WorkerState } from './dispatcher-worker.state.js';
import type { DispatcherRuntime } from './dispatcher.runtime.js';
import { verdictOf } from './verdict.js';

/** The dispatcher that a worker works for. */
export interface WorkerOptions extends Pick<DispatcherSettings, 'name' | 'timeoutMs' | 'maxResends' | 'backoff'> {
  readonly host: Host;
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

/** What is known of a message between two attempts; its bytes are not. */
interface Progress {
  attempts: number;
  nacks: number;
  /** Attempts without a proper answer since the last proper one. */
  improperRun: number;
}

/** The consumer will not have the message. `cause` is the broker's own account of it, fit for every log. */
interface Refusal extends Pick<DeadLetter, 'attempts' | 'reason' | 'answer'> {
  readonly cause: string;
}

/** What an attempt leads to. */
type Step =
  | { readonly kind: 'end'; readonly outcome: Outcome }
  | { readonly kind: 'wait'; readonly run: number; readonly problem: string; readonly longerMs?: number | undefined }
  | { readonly kind: 'giveUp'; readonly refusal: Refusal };

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

/** Read ahead this much where messages flow; each of them is still sent and committed on its own. */
const READ_AHEAD: ReadLimits = { maxCount: 64, maxBytes: 256 * 1024 };
/** While nobody knows whether the consumer is there: one message, which comes whole. */
const READ_ONE: ReadLimits = { ...READ_AHEAD, maxCount: 1 };
/** How long a stop lets the attempt under way, and its commit, come to an end. */
const STOP_GRACE_MS = 5_000;
/** How long a stop waits for an attempt that it has aborted. */
const ABORT_GRACE_MS = 1_000;

/** A run of failures whose waits are the longest already is told of so often: about every ten minutes with the default back-off. */
const LOG_EVERY_RUNS = 10;

/** Leaves, from wherever the worker is, when it must not go on. Never seen outside. */
class Stopped extends Error {}

/**
 * Delivers one topic to one dispatcher's consumer: in order, one message at a time, each at least once.
 *
 * The states are in `WorkerState`. An arrival starts the worker, it ends when the topic is drained, and nothing polls. What it has done is
 * known by the checkpoint alone: it moves, durably, after a message has had its verdict (and after its dead letter is durable), and before the
 * next message is sent. A crash in between makes the last message come again; it never makes one be missed.
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

  private state: WorkerState = WorkerState.IDLE;
  private nextOffset: number | undefined;
  /** The messages in memory, consecutive, the one under way among them. None in any state but DRAINING, and none while it waits for its turn. */
  private held: readonly LogEntry[] = [];
  /** A message came to its end since the worker last waited or rested. */
  private isFlowing = false;
  private lastProblem: Subscription['lastProblem'];
  private drained: Promise<void> = Promise.resolve();
  private endArrivals: (() => void) | undefined;

  constructor(
    private readonly options: WorkerOptions,
    private readonly topicQueue: DispatchedTopicQueue,
    private readonly client: ConsumerClient,
    private readonly runtime: DispatcherRuntime,
    private readonly turns: Turns,
  ) {}

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
      while (this.nextOffset < this.topicQueue.count) await this.process(this.nextOffset);
      // Between the last look at the count and this line nothing can arrive: there is no await. An arrival from now on finds IDLE and wakes.
      this.enter(this.stopping.signal.aborted ? WorkerState.STOPPED : WorkerState.IDLE);
    } catch (error) {
      this.enter(WorkerState.STOPPED);
      if (!(error instanceof Stopped)) throw error;
    }
  }

  /** Brings one message to its end and only then moves the checkpoint past it. A commit that fails does not send the message again. */
  private async process(offset: number): Promise<void> {
    const outcome = await this.deliver(offset);
    await this.insist('the commit failed', () => this.topicQueue.commit(this.options.name, offset + 1));
    this.nextOffset = offset + 1;
    this.counters[outcome] += 1;
    this.isFlowing = true;
  }

  /** One attempt after the other. The message itself is in the hands of the attempt alone, so that the waits in between do not hold it. */
  private async deliver(offset: number): Promise<Outcome> {
    const progress: Progress = { attempts: 0, nacks: 0, improperRun: 0 };
    for (;;) {
      const step = await this.attempt(offset, progress);
      if (step.kind === 'end') return step.outcome;
      if (step.kind === 'giveUp') return await this.giveUp(offset, step.refusal);
      await this.backOff(step.run, 'warn', step.problem, step.longerMs);
    }
  }

  private async attempt(offset: number, progress: Progress): Promise<Step> {
    const sent = await this.insist('reading failed', () => this.inTurn(() => this.send(offset, progress)));
    return typeof sent === 'string' ? { kind: 'end', outcome: sent } : this.judge(offset, sent, progress);
  }

  /** @throws {Stopped} when the worker is to stop before its turn comes */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (!this.turns.hasFree) this.letGo();
    return this.turns.take(work, { signal: this.stopping.signal });
  }

  /** @returns what came of the attempt, or how the message ended without one */
  private async send(offset: number, progress: Progress): Promise<ConsumerReply | Outcome> {
    const entry = await this.read(offset);
    if (this.stopping.signal.aborted) throw new Stopped();
    if (entry.corruption !== undefined) return this.skip(entry);
    progress.attempts += 1;
    return this.post(offset, entry.payload, progress.attempts);
  }

  /** @throws {Error} when the topic queue gives another message than was asked for, which is never taken for this one */
  private async read(offset: number): Promise<LogEntry> {
    const held = this.held.find((entry) => entry.offset === offset);
    if (held !== undefined) return held;
    this.held = await this.topicQueue.read(offset, this.isFlowing ? READ_AHEAD : READ_ONE);
    const [first] = this.held;
    if (first?.offset !== offset) throw new Error(`offset ${offset} was asked for and ${first?.offset ?? 'nothing'} came`);
    return first;
  }

  private skip(entry: LogEntry): Outcome {
    this.logger.error(`${this.at(entry.offset)}: corrupt entry skipped (${entry.corruption})`);
    return 'skippedCorrupt';
  }

  private async post(offset: number, payload: Buffer, attempt: number): Promise<ConsumerReply> {
    const { name, host, timeoutMs } = this.options;
    try {
      const headers = deliveryHeaders({ dispatcher: name, topic: this.topicQueue.topic, offset, attempt }, payload);
      return await this.client.post({ host, headers, body: payload, timeoutMs, signal: this.aborting.signal });
    } catch (error) {
      // The port does not throw; an application's own implementation may. Its message could quote what was sent, so it is not logged.
      return { kind: 'failure', reason: `the consumer client threw ${error instanceof Error ? error.name : typeof error}` };
    }
  }

  private judge(offset: number, reply: ConsumerReply, progress: Progress): Step {
    const { maxResends } = this.options;
    const { attempts, improperRun } = progress;
    const verdict = verdictOf(reply, this.runtime.clock.now());
    if (verdict.kind === 'improper') {
      // An attempt that the stop itself cut off says nothing about the consumer.
      if (this.aborting.signal.aborted) throw new Stopped();
      this.counters.improper += 1;
      progress.improperRun = improperRun + 1;
      const problem = `attempt ${attempts}: no proper answer from ${this.options.host.url('/messages')} (${verdict.reason})`;
      return { kind: 'wait', run: progress.improperRun, problem, longerMs: verdict.retryAfterMs };
    }
    if (improperRun > 0) this.logger.log(`${this.at(offset)}, attempt ${attempts}: the consumer answers properly again`);
    progress.improperRun = 0;
    if (verdict.kind === 'ack') return { kind: 'end', outcome: 'delivered' };

    this.counters.nacked += 1;
    const nacks = (progress.nacks += 1);
    if (verdict.retry && nacks <= maxResends) {
      return { kind: 'wait', run: nacks, problem: `attempt ${attempts}: NACK, resend ${nacks} of ${maxResends} follows` };
    }
    const cause = verdict.retry ? `NACK also after ${maxResends} resends` : 'NACK that asks for no resend';
    const answer = reply.kind === 'answer' ? { status: reply.status, body: reply.body } : undefined;
    return { kind: 'giveUp', refusal: { attempts, cause, reason: verdict.reason || cause, answer } };
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
    const entry = await this.read(offset);
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
    if (state !== WorkerState.DRAINING) this.letGo();
  }

  /** Keeps no message in memory. */
  private letGo(): void {
    this.held = [];
    this.isFlowing = false;
  }

  /** Where the worker is, for the log; never what the message says. */
  private at(offset: number | undefined): string {
    return `dispatcher ${this.options.name}, topic ${this.topicQueue.topic}${offset === undefined ? '' : `, offset ${offset}`}`;
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
