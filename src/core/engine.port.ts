import type { MmmqError } from './mmmq.error.js';

/** The Nest token of the application's {@link Engine}. It stands beside the port so that an engine need not know who uses it. */
export const ENGINE = Symbol('mmmq.engine');

/**
 * The engine port: what keeps the messages. Publishing and dispatching speak to it and to nothing below it, so that segment files
 * today and another log tomorrow can stand behind the same broker. Nothing in the verbs assumes one process or one machine.
 */
export interface Engine {
  /**
   * Opens the log and recovers it.
   * @returns the topics that are there, in the order of their names
   * @throws {MmmqError} LOCKED or CORRUPT: nothing was changed; IO: the start can be repeated when the disk is well
   */
  open(): Promise<readonly TopicLog[]>;
  /** Makes a topic, durably, or finishes one that a crash left half made. Called once per topic at a time. */
  create(topic: string): Promise<TopicLog>;
  /** What an operator should know: the reasons why some publish is refused at the moment. Empty when all is well. */
  problems(): Promise<readonly EngineProblem[]>;
  /** Waits for what is under way, then lets go of everything. Idempotent. */
  close(): Promise<void>;
}

export interface EngineProblem {
  /** Left out where the reason holds for every topic. */
  readonly topic?: string;
  readonly reason: string;
}

/** One topic's durable, append-only log, and how far each dispatcher has come in it. */
export interface TopicLog {
  readonly topic: string;
  /** How many messages can be read: offsets 0 … count-1. It never falls, and what was read once at an offset stays there. */
  readonly count: number;
  /**
   * Appends in order. Called by one writer, one call at a time. Never throws for a failure of the disk: the outcome says how far it came.
   * @param payloads message bytes, never empty, 8 MiB and a little more each at most
   */
  append(payloads: readonly Buffer[]): Promise<AppendOutcome>;
  /**
   * Reads from an offset on, without a lock, and never past `count`.
   * @returns consecutive entries from `offset`, at least one where `offset < count`, otherwise none
   * @throws {MmmqError} code IO: nothing is known of the entry, try again
   */
  read(offset: number, limits: ReadLimits): Promise<readonly LogEntry[]>;
  /** The first offset of the longest tail with at most so many messages and so many bytes of the log. */
  tailOffset(maxCount: number, maxBytes: number): Promise<number>;
  /** Calls the listener after each rise of `count`. @returns what ends it */
  onArrival(listener: () => void): () => void;
  /** The next offset that the dispatcher is to read. A dispatcher never seen before starts at 0, and that is durable when this resolves. */
  committed(dispatcher: string): Promise<number>;
  /** Moves the dispatcher to `nextOffset`, durably. When it throws, no progress may be claimed; the call can be repeated. */
  commit(dispatcher: string, nextOffset: number): Promise<void>;
}

export interface ReadLimits {
  readonly maxCount: number;
  /** Bytes of payload; the first entry comes whole even if it is larger. */
  readonly maxBytes: number;
}

/** An entry as it was read: its bytes, checked against their checksum, or the reason why they cannot be trusted. */
export type LogEntry =
  | { readonly offset: number; readonly payload: Buffer; readonly corruption?: undefined }
  | { readonly offset: number; readonly payload?: undefined; readonly corruption: string };

/**
 * The payloads at `offsets` are durable and visible, in the order of the call; with a `failure`, the rest is not acknowledged.
 * Codes of the failure: DISK_FULL, APPEND_FAILED, TOPIC_REFUSING, CLOSED.
 */
export interface AppendOutcome {
  readonly offsets: readonly number[];
  readonly failure?: MmmqError;
}
