import type { LoggerService } from '@nestjs/common';
import type { Dispatcher } from 'undici';
import type { Backoff, Clock } from '../core/index.js';
import type { FileSystem } from '../disk-queue/index.js';
import type { ProducerObserver } from './producer.observer.js';
import type { ProducerTransport } from './transport/index.js';

/** How a producer speaks to its broker. Only `broker` has to be given. */
export interface ProducerOptions {
  /** The URL of the broker: `http://localhost:8080`, with a path where the broker has one, such as a global prefix. */
  readonly broker: string;
  /** The longest that one attempt may take, from connect to the last byte of the answer: 1 to 3,600,000 milliseconds; 10000 by default. */
  readonly timeoutMs?: number | undefined;
  /** The longest that a produce may take, with all attempts and waits: 1 to 3,600,000 milliseconds; 30000 by default. */
  readonly deadlineMs?: number | undefined;
  /** The waits between attempts, in milliseconds: from 100, doubled up to 5000, by default; 0 to 10 % at random on top. */
  readonly backoff?: Partial<Backoff> | undefined;
  /** How long the first message of a batch waits for more: 0 to 60,000 milliseconds; 0 by default. Messages gather behind a request in any case. */
  readonly lingerMs?: number | undefined;
  /** What one request holds at most. The broker must take as much. */
  readonly batch?: Partial<ProducerBatch> | undefined;
  /** The bytes of messages in memory at most, each counted with 512 more: 1 to 1 TiB; 64 MiB by default. As much again on its way into the spool. */
  readonly pendingMaxBytes?: number | undefined;
  /** Sent with every request, `authorization` with a bearer token for one. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** HTTP basic authentication. */
  readonly auth?: ProducerAuth | undefined;
  /** An undici dispatcher, for TLS or a proxy: a pool of its own by default. One that is given is closed by whoever made it. */
  readonly agent?: Dispatcher | undefined;
  /** Requests under way at a time at most, each on its connection, one for each topic: 1 to 1024; 32 by default. */
  readonly connections?: number | undefined;
  /** Where messages go that the broker cannot take now. Without it, produce fails then. */
  readonly spool?: SpoolOptions | undefined;
  /** Hears what becomes of messages, for metrics. */
  readonly observer?: ProducerObserver | undefined;
  /** Hears of trouble with the spool: Nest's logger by default. */
  readonly logger?: LoggerService | undefined;
  /** Stands in for the network, for tests. One that is given is closed by whoever made it. */
  readonly transport?: ProducerTransport | undefined;
  /** @internal for tests: the system's by default */
  readonly clock?: Clock | undefined;
}

export interface ProducerBatch {
  /** 1 to 10,000; 1000 by default. */
  readonly maxMessages: number;
  /** 1 to 16 MiB, bytes; 1 MiB by default. A larger message goes alone. */
  readonly maxBytes: number;
}

export interface ProducerAuth {
  readonly username: string;
  readonly password: string;
}

/** A spool: the files of a disk queue, and `<name>.dead.ndjson` for what the broker has refused for good. */
export interface SpoolOptions {
  /** The directory: made where it is missing, held by this process alone. */
  readonly dir: string;
  /** What the files begin with, as of a disk queue; `producer` by default. */
  readonly name?: string | undefined;
  /** So many messages at most: 1 to 1,000,000,000, which is the default. One more fails as it would without a spool. */
  readonly maxMessages?: number | undefined;
  /** The disk, for tests: the real one by default. */
  readonly fileSystem?: FileSystem | undefined;
}
