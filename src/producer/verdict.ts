import { Acknowledgement } from '../core/index.js';
import type { Refusal } from './produce-refused.error.js';
import type { TransportAnswer } from './transport/index.js';

/** What one attempt says of one message. */
export type Verdict =
  | { readonly kind: 'acknowledged'; readonly offset: number }
  /** For good: it is not stored, and repeated unchanged it is refused again. */
  | ({ readonly kind: 'refused' } & Refusal)
  | Unsettled
  /** Nothing was looked at, as the batch was too much for the broker: to be sent again in smaller ones. */
  | { readonly kind: 'apart' };

/** To be repeated. */
export interface Unsettled {
  readonly kind: 'unsettled';
  /** False only where it is certain that this attempt has stored nothing. */
  readonly mayBeStored: boolean;
  readonly reason: string;
  /** How long the broker wants to be left alone, in milliseconds; 0 where it did not say. */
  readonly retryAfterMs: number;
}

/** Refused for what the message is, so that no attempt before can have stored it. Other refusals are about who asks, and where. */
const ABOUT_THE_MESSAGE: ReadonlySet<number> = new Set([400, 409, 413, 415, 422]);
/** Refused before anything was stored, and only for now. */
const NOT_NOW: ReadonlySet<number> = new Set([408, 429]);
const DISK_FULL = 507;
const MAX_REASON_LENGTH = 512;
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu;

/** Whether a refusal with this status is the message's own, and not one of the login, the address or a redirect. */
export function isAboutTheMessage(status: number): boolean {
  return ABOUT_THE_MESSAGE.has(status);
}

/**
 * The verdicts of an answer, one for each message in order. Everything that is not the broker's own word leaves the messages unsettled.
 * @param topics those of the messages that were sent
 * @param nowMs epoch milliseconds, for a `Retry-After` that is a date
 */
export function verdictsOf(answer: TransportAnswer, topics: readonly string[], nowMs: number): readonly Verdict[] {
  const retryAfterMs = retryAfterOf(answer.headers['retry-after'], nowMs);
  const said = parsed(answer.body);
  if (topics.length === 1 && !Array.isArray(said)) return [verdictOf(answer.status, said, topics[0] ?? '', retryAfterMs)];
  if (Array.isArray(said) && said.length === topics.length) {
    return topics.map((topic, place) => {
      const item: unknown = said[place];
      return verdictOf(statusOf(item) ?? 200, item, topic, retryAfterMs);
    });
  }
  if (topics.length > 1 && isAboutTheMessage(answer.status)) return topics.map(() => ({ kind: 'apart' }));
  const whole = verdictOf(answer.status, Array.isArray(said) ? undefined : said, undefined, retryAfterMs);
  return topics.map(() => whole);
}

/** @param topic undefined where the answer speaks of a whole batch, which it cannot acknowledge */
function verdictOf(status: number, said: unknown, topic: string | undefined, retryAfterMs: number): Verdict {
  const words = wordsOf(said);
  const unsettled = (mayBeStored: boolean): Unsettled => ({
    kind: 'unsettled',
    mayBeStored,
    reason: `answered with ${status}${words.reason === undefined ? '' : `: ${words.reason}`}`,
    retryAfterMs,
  });
  if (status >= 200 && status < 300) {
    const offset = offsetOf(said, topic);
    if (offset !== undefined) return { kind: 'acknowledged', offset };
    return { ...unsettled(true), reason: `answered with ${status} and no acknowledgement of the message` };
  }
  if (NOT_NOW.has(status)) return unsettled(false);
  // What else a proxy says with such a status, it says of its own disk.
  if (status === DISK_FULL) return unsettled(!words.isNack);
  if (status >= 300 && status < 500) return { kind: 'refused', status, field: words.field, reason: words.reason ?? reasonOf(status) };
  return unsettled(true);
}

function offsetOf(said: unknown, topic: string | undefined): number | undefined {
  if (topic === undefined || !isObject(said)) return undefined;
  if (said['acknowledgement'] !== Acknowledgement.ACK || said['topic'] !== topic) return undefined;
  const offset = said['offset'];
  return Number.isSafeInteger(offset) && (offset as number) >= 0 ? (offset as number) : undefined;
}

function wordsOf(said: unknown): { readonly isNack: boolean; readonly field?: string | undefined; readonly reason?: string | undefined } {
  if (!isObject(said) || said['acknowledgement'] !== Acknowledgement.NACK) return { isNack: false };
  return { isNack: true, field: textOf(said['field']), reason: textOf(said['reason']) };
}

function reasonOf(status: number): string {
  if (status < 400) return 'the address answers with a redirect, which is not followed; give the address that it leads to (option broker)';
  if (status === 401 || status === 403) return 'whoever answers does not let this producer in; look at the options auth and headers';
  if (status === 404 || status === 405) return 'no broker takes messages at this address; look at the option broker';
  return 'refused, and not in the words of a broker';
}

/** Whole seconds, or a date; nonsense is none. */
function retryAfterOf(header: string | string[] | undefined, nowMs: number): number {
  const text = (typeof header === 'object' ? header[0] : header)?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? 0 : Math.max(0, date - nowMs);
}

function statusOf(item: unknown): number | undefined {
  const status = isObject(item) ? item['status'] : undefined;
  return typeof status === 'number' ? status : undefined;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** It ends up in logs: one line, and not too long. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, MAX_REASON_LENGTH).replace(UNPRINTABLE, ' ') : undefined;
}
