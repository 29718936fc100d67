import type { Host } from '../../core/index.js';

/** One attempt to hand a message, or a batch of them, to a consumer. */
export interface ConsumerRequest {
  readonly host: Host;
  /** Below the host: `/messages`, or `/messages/batch`. */
  readonly path: string;
  /** The headers, lower-case names; values are printable ASCII. */
  readonly headers: Readonly<Record<string, string>>;
  /** The stored message, or a JSON array of stored messages, sent as it is. */
  readonly body: Buffer;
  /** One deadline for the whole attempt, from connect to the last byte of the answer, in milliseconds. */
  readonly timeoutMs: number;
  /** An answer of more bytes is not read to its end: the attempt fails. */
  readonly maxAnswerBytes: number;
  /** Ends the attempt early (the broker stops). */
  readonly signal: AbortSignal;
}

/** What came of one attempt. A failure to get an answer is an outcome that is expected, not an error: it is never thrown. */
export type ConsumerReply =
  | { readonly kind: 'answer'; readonly status: number; readonly body: Buffer; readonly retryAfter?: string | undefined }
  | { readonly kind: 'failure'; readonly reason: string };

/**
 * How a dispatcher speaks to its consumer: `POST {host}{path}`.
 *
 * Every implementation bounds the whole attempt in time (`timeoutMs`) and the answer in bytes (`maxAnswerBytes`), follows no redirect,
 * frees its socket on every path, and never throws.
 */
export interface ConsumerClient {
  post(request: ConsumerRequest): Promise<ConsumerReply>;
  /** Closes idle connections. Attempts under way are ended by their own signal. */
  close(): Promise<void>;
}
