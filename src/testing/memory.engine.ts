import { ENTRY_HEADER_BYTES, ErrorCode, MmmqError } from '../core/index.js';
import type { AppendOutcome, Engine, EngineProblem, LogEntry, ReadLimits, TopicLog } from '../core/index.js';

/** What a test lets go wrong. Each is asked before the deed; throwing or waiting in it is the fault. */
export interface MemoryEngineFaults {
  open?: () => void | Promise<void>;
  create?: (topic: string) => void | Promise<void>;
  /** The answer says how many of the payloads are still stored, and the failure that the rest gets. */
  append?: (topic: string, payloads: readonly Buffer[]) => AppendFault | undefined | Promise<AppendFault | undefined>;
  read?: (topic: string, offset: number) => void | Promise<void>;
  commit?: (topic: string, dispatcher: string, nextOffset: number) => void | Promise<void>;
  close?: () => void | Promise<void>;
}

export interface AppendFault {
  readonly stored: number;
  readonly failure: MmmqError;
}

/**
 * An engine in memory for specs that are not about files. Its faults: an open, a creation, an append, a read, a commit or a close that waits
 * or fails, an entry that is corrupt, and problems to report. `restarted()` is the same log as a new process would find it.
 */
export class MemoryEngine implements Engine {
  readonly faults: MemoryEngineFaults = {};
  reported: EngineProblem[] = [];
  isClosed = false;

  constructor(readonly logs: Map<string, MemoryTopicLog> = new Map<string, MemoryTopicLog>()) {}

  /** A log that is there before the start. */
  withTopic(topic: string, payloads: readonly Buffer[] = []): MemoryTopicLog {
    const log = new MemoryTopicLog(topic, this);
    log.payloads.push(...payloads);
    this.logs.set(topic, log);
    return log;
  }

  restarted(): MemoryEngine {
    const engine = new MemoryEngine();
    for (const log of this.logs.values()) engine.logs.set(log.topic, log.movedTo(engine));
    return engine;
  }

  async open(): Promise<readonly TopicLog[]> {
    await this.faults.open?.();
    return [...this.logs.values()].sort((a, b) => (a.topic < b.topic ? -1 : 1));
  }

  async create(topic: string): Promise<TopicLog> {
    await this.faults.create?.(topic);
    return this.withTopic(topic);
  }

  async problems(): Promise<readonly EngineProblem[]> {
    return this.reported;
  }

  async close(): Promise<void> {
    await this.faults.close?.();
    this.isClosed = true;
  }
}

export class MemoryTopicLog implements TopicLog {
  readonly payloads: Buffer[] = [];
  readonly corrupt = new Set<number>();
  readonly positions = new Map<string, number>();
  /** The payloads of every call of append, to see what shared a pass. */
  readonly passes: (readonly Buffer[])[] = [];
  readonly #listeners = new Set<() => void>();

  constructor(
    readonly topic: string,
    private readonly engine: MemoryEngine,
  ) {}

  get count(): number {
    return this.payloads.length;
  }

  movedTo(engine: MemoryEngine): MemoryTopicLog {
    const log = new MemoryTopicLog(this.topic, engine);
    log.payloads.push(...this.payloads);
    for (const offset of this.corrupt) log.corrupt.add(offset);
    for (const [dispatcher, offset] of this.positions) log.positions.set(dispatcher, offset);
    return log;
  }

  async append(payloads: readonly Buffer[]): Promise<AppendOutcome> {
    this.passes.push(payloads);
    const fault = await this.engine.faults.append?.(this.topic, payloads);
    if (this.engine.isClosed) return { offsets: [], failure: new MmmqError(ErrorCode.CLOSED, 'the engine is closed') };
    const first = this.payloads.length;
    this.payloads.push(...payloads.slice(0, fault?.stored));
    const offsets = Array.from({ length: this.payloads.length - first }, (_, index) => first + index);
    if (offsets.length > 0) for (const listener of this.#listeners) listener();
    return fault === undefined ? { offsets } : { offsets, failure: fault.failure };
  }

  async read(offset: number, limits: ReadLimits): Promise<readonly LogEntry[]> {
    const { count } = this;
    await this.engine.faults.read?.(this.topic, offset);
    const entries: LogEntry[] = [];
    let bytes = 0;
    for (let next = offset; next < count && entries.length < limits.maxCount; next += 1) {
      const payload = this.payloads[next] as Buffer;
      bytes += payload.length;
      if (entries.length > 0 && bytes > limits.maxBytes) break;
      entries.push(this.corrupt.has(next) ? { offset: next, corruption: 'the checksum does not fit' } : { offset: next, payload });
    }
    return entries;
  }

  async tailOffset(maxCount: number, maxBytes: number): Promise<number> {
    let offset = this.count;
    let bytes = 0;
    while (offset > 0 && this.count - offset < maxCount) {
      bytes += ENTRY_HEADER_BYTES + (this.payloads[offset - 1] as Buffer).length;
      if (bytes > maxBytes) break;
      offset -= 1;
    }
    return offset;
  }

  onArrival(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async committed(dispatcher: string): Promise<number> {
    const offset = this.positions.get(dispatcher) ?? 0;
    this.positions.set(dispatcher, offset);
    return offset;
  }

  async commit(dispatcher: string, nextOffset: number): Promise<void> {
    await this.engine.faults.commit?.(this.topic, dispatcher, nextOffset);
    this.positions.set(dispatcher, nextOffset);
  }
}
