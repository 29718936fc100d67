import { isUtf8 } from 'node:buffer';
import { Acknowledgement } from '../core/index.js';
import type { ConsumerReply } from './consumer-client/index.js';

/** What an attempt means for its message. */
export type Verdict = { readonly kind: 'ack' } | NackVerdict | ImproperVerdict;

/** `retry` is false where the consumer wants no resend. `reason` is the consumer's own, fit for a log. */
export interface NackVerdict {
  readonly kind: 'nack';
  readonly retry: boolean;
  readonly reason?: string | undefined;
}

/** No proper answer. `retryAfterMs` is the wait that the consumer asks for, in milliseconds. */
export interface ImproperVerdict {
  readonly kind: 'improper';
  readonly reason: string;
  readonly retryAfterMs?: number | undefined;
}

/** What an attempt means for the messages of its request: so many in front are acknowledged, and what is said of the one behind them. */
export interface Verdicts {
  readonly acks: number;
  /** Undefined where nothing is said of it. */
  readonly other?: NackVerdict | ImproperVerdict | undefined;
  /** What was answered, as far as it concerns a message that got NACK. */
  readonly answer?: ConsumerAnswer | undefined;
}

export interface ConsumerAnswer {
  readonly status: number;
  readonly body: Buffer;
}

const PLAIN_ACK = Buffer.from(JSON.stringify({ acknowledgement: Acknowledgement.ACK }));
const MAX_REASON_LENGTH = 1000;
/** Control characters, line and paragraph separators, lone surrogates: what could forge or break a line of a log. */
const HARMFUL_IN_LOGS = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/gu;
/** In valid JSON: its strings whole, and the signs that open, close and part. */
const JSON_TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/g;

/**
 * Reads a verdict out of what came of an attempt. A 2xx answer whose body is a JSON object with `"acknowledgement": "ACK"` or `"NACK"` is
 * proper, whatever its content type and its other members; everything else is improper.
 * @param nowMs epoch milliseconds, for a `Retry-After` that is a date
 */
export function verdictOf(reply: ConsumerReply, nowMs: number = Date.now()): Verdict {
  if (!isSuccess(reply)) return failureVerdict(reply, nowMs);
  const verdict = verdictIn(reply.body, 'body');
  return verdict.kind === 'improper' ? { ...verdict, reason: `status ${reply.status}, ${verdict.reason}` } : verdict;
}

/** An answer whose body is to be looked at. */
export function isSuccess(reply: ConsumerReply): reply is ConsumerReply & ConsumerAnswer {
  return reply.kind === 'answer' && reply.status >= 200 && reply.status <= 299;
}

/** The verdict where nothing was answered, or with another status than 2xx: improper, whatever the body says. */
export function failureVerdict(reply: ConsumerReply, nowMs: number): ImproperVerdict {
  if (reply.kind === 'failure') return { kind: 'improper', reason: reply.reason };
  return { kind: 'improper', reason: `status ${reply.status}`, retryAfterMs: retryAfterMs(reply.retryAfter, nowMs) };
}

/**
 * Reads a verdict out of a JSON object.
 * @param what how to call the object in the reason of an improper one, which does not quote it
 */
export function verdictIn(object: Buffer, what: string): Verdict {
  // As most consumers write it.
  if (object.equals(PLAIN_ACK)) return { kind: 'ack' };
  if (object.length === 0) return { kind: 'improper', reason: `empty ${what}` };
  const answer = parsedObject(object);
  if (answer === undefined) return { kind: 'improper', reason: `${what} is no JSON object in UTF-8` };
  if (isAmbiguous(object)) return { kind: 'improper', reason: `${what} has "acknowledgement" or "retry" twice` };
  switch (answer['acknowledgement']) {
    case Acknowledgement.ACK:
      return { kind: 'ack' };
    case Acknowledgement.NACK: {
      const { reason } = answer;
      return {
        kind: 'nack',
        // Only the boolean: a string "false" or a 0 is no clear wish to give up a message.
        retry: answer['retry'] !== false,
        reason: typeof reason === 'string' ? harmless(reason) : undefined,
      };
    }
    default:
      return { kind: 'improper', reason: `${what} has no "acknowledgement" of "ACK" or "NACK"` };
  }
}

function parsedObject(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  // toString() alone would repair bad bytes in silence.
  if (!isUtf8(body)) return undefined;
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The members that make a verdict. Others are none of the broker's business. */
const VERDICT_MEMBERS: ReadonlySet<string> = new Set(['acknowledgement', 'retry']);

/**
 * Whether the object has a member of the verdict twice at its top. JSON.parse takes the last one, other parsers the first: the consumer may
 * have meant either.
 */
function isAmbiguous(object: Buffer): boolean {
  const names = new Set<string>();
  let depth = 0;
  let lastString = '""';
  for (const [token] of object.toString().matchAll(JSON_TOKEN)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (token !== ':') lastString = token;
    else if (depth === 1) {
      const name = JSON.parse(lastString) as string;
      if (names.has(name)) return true;
      if (VERDICT_MEMBERS.has(name)) names.add(name);
    }
  }
  return false;
}

function harmless(reason: string): string {
  return [...reason].slice(0, MAX_REASON_LENGTH).join('').replace(HARMFUL_IN_LOGS, ' ');
}

/**
 * RFC 9110, 10.2.3: a number of seconds, or a date (in its current form alone; nobody sends the two obsolete ones).
 * @returns milliseconds; undefined for nonsense and for what is over
 */
function retryAfterMs(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) {
    const ms = Number(value) * 1000;
    return Number.isSafeInteger(ms) ? ms : undefined;
  }
  const at = new Date(value);
  // Date reads almost anything ("1.5", "2030"); a date of HTTP is one that it writes the same way.
  return at.toUTCString() === value && at.getTime() > nowMs ? at.getTime() - nowMs : undefined;
}
