import { ErrorCode, Host, isDeadLetterTopic, MmmqError, Turns, type Clock, type LogEntry, type TopicLog } from '../../src/core/index.js';
import type { ConsumerReply, ConsumerRequest } from '../../src/dispatcher/index.js';
import { BatchRoom } from '../../src/dispatcher/batch-room.js';
import { DispatcherWorker } from '../../src/dispatcher/dispatcher-worker.js';
import { WorkerState } from '../../src/dispatcher/dispatcher-worker.state.js';
import { messageOf, type Message, type MessageDraft } from '../../src/message/index.js';
import type { FileEngine } from '../../src/storage/index.js';
import { IdempotencyMemory, TopicQueue } from '../../src/topic-queue/index.js';
import { fileEngine, readAll } from '../support/file-engine.js';
import { Violation, type Oracle } from './oracle.js';
import type { SimulatedDisk } from './simulated-disk.js';

export const ROOT_DIR = '/data';
const HOST = Host.of('http://127.0.0.1:1');
const ACK = '{"acknowledgement":"ACK"}';
const READ_LIMITS = { maxCount: 1000, maxBytes: 1024 * 1024 };

/** Time that passes only when nothing else can happen. */
export class SimulatedClock implements Clock {
  private nowMs = 1_700_000_000_000;
  private readonly waits = new Map<() => void, number>();

  now(): number {
    return this.nowMs;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        this.waits.delete(end);
        signal.removeEventListener('abort', end);
        resolve();
      };
      this.waits.set(end, this.nowMs + ms);
      signal.addEventListener('abort', end, { once: true });
    });
  }

  /** Lets the wait that ends first end. @returns false where nobody waits */
  advance(): boolean {
    const first = [...this.waits].sort(([, a], [, b]) => a - b)[0];
    if (first === undefined) return false;
    this.nowMs = Math.max(this.nowMs, first[1]);
    first[0]();
    return true;
  }

  /**
   * Runs until the work is done, letting time pass whenever everything waits for it.
   * @returns 'waiting' when so many waits did not help
   */
  async run(work: Promise<unknown>, maxWaits: number): Promise<'done' | 'waiting'> {
    const outcome: { error?: unknown; isDone: boolean } = { isDone: false };
    work.then(
      () => (outcome.isDone = true),
      (error: unknown) => {
        outcome.isDone = true;
        outcome.error = error;
      },
    );
    for (let waits = 0; ; waits += 1) {
      // Every turn of the microtask queue is over when this resolves.
      await new Promise((resolve) => setImmediate(resolve));
      if (outcome.isDone) break;
      if (waits >= maxWaits || !this.advance()) return 'waiting';
    }
    if (outcome.error !== undefined) throw outcome.error;
    return 'done';
  }
}

/** What a consumer makes of a message. */
export type ConsumerBehaviour = (offset: number, attempt: number) => 'ack' | 'nack' | 'reject' | 'vanish';

export interface SimulatedBrokerOptions {
  readonly segmentMaxBytes: number;
  /** None where it is left out. */
  readonly reserveBytes?: number;
  readonly dispatchers: readonly string[];
  /** So many messages in a request at most; each alone where it is left out. */
  readonly batchMaxMessages?: number;
  readonly consumer: ConsumerBehaviour;
}

/**
 * A broker's process on a simulated disk: the file engine, a topic queue for each topic, and workers for each dispatcher, which is
 * everything between the HTTP server and the disk. It tells the oracle what it promises.
 */
export class SimulatedBroker {
  readonly engine: FileEngine;
  readonly log: string[];
  private readonly queues = new Map<string, TopicQueue>();
  private readonly logs = new Map<string, TopicLog>();
  private readonly creations = new Map<string, Promise<TopicQueue>>();
  private readonly workers: DispatcherWorker[] = [];
  private readonly idempotencyMemory = new IdempotencyMemory();
  /** How often the consumer came to each message, by dispatcher, topic and offset. */
  private readonly judged = new Map<string, number>();
  private isDispatching = false;
  private broken: unknown;

  constructor(
    private readonly disk: SimulatedDisk,
    readonly oracle: Oracle,
    readonly clock: SimulatedClock,
    private readonly options: SimulatedBrokerOptions,
  ) {
    const { engine, log } = fileEngine(ROOT_DIR, {
      fileSystem: disk,
      clock,
      segmentMaxBytes: options.segmentMaxBytes,
      reserveBytes: options.reserveBytes ?? 0,
    });
    this.engine = engine;
    this.log = log;
    oracle.started();
  }

  get topics(): readonly string[] {
    return [...this.logs.keys()];
  }

  /** @throws {Violation} where dispatchers wait although nothing failed but for the room that there is not */
  assertAllDelivered(): void {
    if (!this.isAtRest && !this.disk.hasStruck) throw new Violation(`a full disk holds up deliveries: ${this.log.slice(-3).join(' | ')}`);
  }

  /** Lets time pass, and others work. */
  async pause(ms: number): Promise<void> {
    await this.clock.sleep(ms, new AbortController().signal);
  }

  /** The disk has so many bytes of room from now on; Infinity where it is never full. */
  limitRoom(bytes: number): void {
    this.disk.limitRoom(bytes);
  }

  get isAtRest(): boolean {
    return this.workers.every(
      ({ subscription: { state, nextOffset, topic } }) => state === WorkerState.IDLE && nextOffset === this.logs.get(topic)?.count,
    );
  }

  async open(): Promise<void> {
    for (const log of await this.engine.open()) this.register(log);
  }

  /** Publishes as a producer does. @returns whether it was acknowledged */
  async publish(draft: MessageDraft): Promise<boolean> {
    try {
      await this.append(messageOf(draft));
      return true;
    } catch {
      return false;
    }
  }

  private async append(message: Message): Promise<{ topic: string; offset: number }> {
    const queue = this.queues.get(message.topic) ?? (await this.create(message.topic));
    const submission = this.oracle.submitted(message);
    try {
      const offset = await queue.append(message);
      this.tell(() => this.oracle.acknowledged(submission, offset));
      return { topic: message.topic, offset };
    } catch (error) {
      // Where the disk has room for a part of it only, that part is taken back before the sender is told. After a failed sync nobody knows.
      const isGone = error instanceof MmmqError && error.code === ErrorCode.DISK_FULL && !this.disk.hasStruck;
      this.oracle.refused(submission, isGone);
      throw error;
    }
  }

  private create(topic: string): Promise<TopicQueue> {
    const underWay = this.creations.get(topic);
    if (underWay !== undefined) return underWay;
    const creation = this.engine
      .create(topic)
      .then((log) => this.register(log))
      .finally(() => this.creations.delete(topic));
    this.creations.set(topic, creation);
    return creation;
  }

  private register(log: TopicLog): TopicQueue {
    const queue = new TopicQueue(log, { clock: this.clock, idempotencyMemory: this.idempotencyMemory });
    this.queues.set(log.topic, queue);
    this.logs.set(log.topic, log);
    if (this.isDispatching) this.subscribe(queue);
    return queue;
  }

  dispatch(): void {
    if (this.isDispatching) return;
    this.isDispatching = true;
    for (const queue of this.queues.values()) this.subscribe(queue);
  }

  private subscribe(queue: TopicQueue): void {
    if (isDeadLetterTopic(queue.topic)) return;
    const { dispatchers, batchMaxMessages: maxMessages } = this.options;
    const batch = maxMessages === undefined ? undefined : { maxMessages, maxBytes: 1024 * 1024 };
    for (const name of dispatchers) {
      const worker = new DispatcherWorker(
        { name, host: HOST, timeoutMs: 1_000, maxResends: 1, backoff: { initialMs: 10, maxMs: 100 }, batch },
        this.watched(queue),
        { post: (request) => this.post(name, request), close: () => Promise.resolve() },
        {
          clock: this.clock,
          random: () => 0,
          topicQueues: {
            append: async (message) => {
              const stored = await this.append(message);
              this.tell(() => this.oracle.deadLettered(name, message));
              return stored;
            },
          },
        },
        { turns: new Turns(128), batchRoom: new BatchRoom() },
      );
      this.workers.push(worker);
      worker.start();
    }
  }

  /** The queue as a worker sees it, with its commits told to the oracle. */
  private watched(queue: TopicQueue): ConstructorParameters<typeof DispatcherWorker>[1] {
    return {
      topic: queue.topic,
      get count() {
        return queue.count;
      },
      read: (offset, limits) => queue.read(offset, limits),
      onArrival: (listener) => queue.onArrival(listener),
      committed: (dispatcher) => queue.committed(dispatcher),
      commit: async (dispatcher, nextOffset) => {
        await queue.commit(dispatcher, nextOffset);
        this.oracle.committed(dispatcher, queue.topic, nextOffset);
      },
    };
  }

  private async post(dispatcher: string, request: ConsumerRequest): Promise<ConsumerReply> {
    const { headers, body, path } = request;
    const topic = String(headers['mmmq-topic']);
    const offset = Number(headers['mmmq-offset']);
    const isBatch = path === '/messages/batch';
    // A copy: what was shown must not change with the broker's memory.
    const payloads = isBatch ? elementsOf(Buffer.from(body)) : [Buffer.from(body)];
    this.tell(() => this.oracle.delivering(dispatcher, topic, offset, payloads));
    await Promise.resolve();
    const verdicts: string[] = [];
    for (let index = 0; index < payloads.length; index += 1) {
      const verdict = this.judge(dispatcher, topic, offset + index);
      if (verdict === undefined && index === 0) return { kind: 'failure', reason: 'ECONNRESET' };
      // In the middle of a batch a consumer that vanishes says nothing of the rest, or something that nobody understands.
      if (verdict === undefined) verdicts.push(...((offset + index) % 2 === 0 ? [] : ['null']));
      else verdicts.push(verdict);
      if (verdict !== ACK) break;
    }
    const text = isBatch ? `[${verdicts.join()}]` : String(verdicts[0]);
    return { kind: 'answer', status: 200, body: Buffer.from(text) };
  }

  /** What the consumer answers to a message; undefined where it does not. */
  private judge(dispatcher: string, topic: string, offset: number): string | undefined {
    const key = `${dispatcher} ${topic} ${offset}`;
    const attempt = (this.judged.get(key) ?? 0) + 1;
    this.judged.set(key, attempt);
    switch (this.options.consumer(offset, attempt)) {
      case 'ack':
        this.oracle.verdict(dispatcher, topic, offset);
        return ACK;
      case 'nack':
        return '{"acknowledgement":"NACK"}';
      case 'reject':
        return '{"acknowledgement":"NACK","retry":false,"reason":"not mine"}';
      case 'vanish':
        return undefined;
    }
  }

  /** What can be seen of the counts at this moment counts as seen. */
  look(): void {
    for (const { topic, count } of this.logs.values()) this.tell(() => this.oracle.sawCount(topic, count));
  }

  /** The broker may take what the oracle throws for a failure of its own, and try again: it is kept for whoever asks. */
  private tell(report: () => void): void {
    try {
      report();
    } catch (error) {
      this.broken ??= error;
      throw error;
    }
  }

  /** @throws {Violation} when a promise was broken on the way */
  assertNothingBroken(): void {
    if (this.broken !== undefined) throw this.broken;
  }

  async readAll(): Promise<Map<string, LogEntry[]>> {
    const entries = new Map<string, LogEntry[]>();
    for (const [topic, log] of this.logs) entries.set(topic, await readAll(log, 0, READ_LIMITS));
    return entries;
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.engine.close();
  }
}

/** The bytes of each element of a JSON array of objects. Written apart from the broker's own code: braces in strings do not occur here. */
function elementsOf(array: Buffer): readonly Buffer[] {
  const text = array.toString('latin1');
  const elements: Buffer[] = [];
  let depth = 0;
  let start = 0;
  for (const { index, 0: brace } of text.matchAll(/[{}]/g)) {
    if (brace === '{' && depth === 0) start = index;
    depth += brace === '{' ? 1 : -1;
    if (depth === 0) elements.push(array.subarray(start, index + 1));
  }
  return elements;
}
