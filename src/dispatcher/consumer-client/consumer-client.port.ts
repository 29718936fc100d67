import type { Host } from '../../core/index.js';

/** One attempt to hand a message to a consumer. */
export interface ConsumerRequest {
  readonly host: Host;
  /** The headers, lower-case names; values are printable ASCII. */
  readonly headers: Readonly<Record<string, string>>;
  /** The stored message, sent as it is. */
  readonly body: Buffer;
  /** One deadline for the whole attempt, from connect to the last byte of the answer, in milliseconds. */
  readonly timeoutMs: number;
  /** Ends the attempt early (the broker stops). */
  readonly signal: AbortSignal;
}

/** An answer larger than this is not read to its end and is no proper answer. */
export const MAX_ANSWER_BYTES = 64 * 1024;

/** What came of one attempt. A failure to get an answer is an outcome that is expected, not an error: it is never thrown. */
export type ConsumerReply =
  | { readonly kind: 'answer'; readonly status: number; readonly body: Buffer; readonly retryAfter?: string | undefined }
  | { readonly kind: 'failure'; readonly reason: string };

/**
 * How a dispatcher speaks to its consumer: `POST {host}/messages`.
 *
 * Every implementation bounds the whole attempt in time (`timeoutMs`) and the answer in bytes (`MAX_ANSWER_BYTES`), follows no redirect,
 * frees its socket on every path, and never throws.
 */
export interface ConsumerClient {
  post(request: ConsumerRequest): Promise<ConsumerReply>;
  /** Closes idle connections. Attempts under way are ended by their own signal. */
  close(): Promise<void>;
}
