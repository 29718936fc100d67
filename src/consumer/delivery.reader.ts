import { dispatcherNameProblem, topicProblem } from '../core/index.js';
import type { Refusal } from '../http-route/index.js';
import { jsonElements, readStored, type StoredMessage } from '../message/index.js';

/** As Node.js gives them: names in lower case. */
export type DeliveryHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** What a request brings: one message, or consecutive ones of a topic. */
export interface Delivery {
  readonly dispatcher: string;
  readonly topic: string;
  /** Of the first message. */
  readonly offset: number;
  readonly attempt: number;
  /** The bytes of the messages, not looked at yet. */
  readonly messages: readonly Buffer[];
}

export type ReadMessage = StoredMessage & { readonly content: Buffer };

/** A dispatcher sends 1000 at most. */
const MAX_COUNT = 10_000;
const WHOLE_NUMBER = /^\d{1,16}$/;

/** Thrown where a request is no delivery: status 400. */
export class DeliveryRefused extends Error implements Refusal {
  readonly status = 400;

  constructor(
    readonly field: string | undefined,
    readonly reason: string,
  ) {
    super(field === undefined ? reason : `${field}: ${reason}`);
  }
}

/** @throws {DeliveryRefused} when the headers are not those of a delivery */
export function readDelivery(headers: DeliveryHeaders, body: Buffer): Delivery {
  return { ...addressOf(headers), messages: [body] };
}

/** @throws {DeliveryRefused} when the headers are not those of a batch, or the body is no array of as many elements as they say */
export function readBatch(headers: DeliveryHeaders, body: Buffer): Delivery {
  const count = numberIn(headers, 'mmmq-count', 1, MAX_COUNT);
  const messages = jsonElements(body, count);
  if (messages?.length !== count)
    throw new DeliveryRefused(undefined, `the body is no JSON array of ${count} messages in UTF-8, which mmmq-count says`);
  return { ...addressOf(headers), messages };
}

/**
 * Reads one message of a delivery. Its topic is that of the delivery: the log of a topic may have been copied under another name.
 * @throws {DeliveryRefused} when it is no JSON object with a content
 */
export function readMessage(bytes: Buffer): ReadMessage {
  const message = readStored(bytes);
  if (message === undefined) throw new DeliveryRefused(undefined, 'the message is no JSON object in UTF-8');
  const { content } = message;
  if (content === undefined) throw new DeliveryRefused('content', 'the member "content" is missing');
  return { ...message, content };
}

function addressOf(headers: DeliveryHeaders): Omit<Delivery, 'messages'> {
  return {
    dispatcher: textIn(headers, 'mmmq-dispatcher', dispatcherNameProblem),
    topic: textIn(headers, 'mmmq-topic', topicProblem),
    offset: numberIn(headers, 'mmmq-offset', 0, Number.MAX_SAFE_INTEGER),
    attempt: numberIn(headers, 'mmmq-attempt', 1, Number.MAX_SAFE_INTEGER),
  };
}

function textIn(headers: DeliveryHeaders, name: string, problem: (text: string) => string | undefined): string {
  const text = headers[name];
  if (typeof text !== 'string') throw new DeliveryRefused(name, 'the header is missing: this is no delivery of a dispatcher');
  const rule = problem(text);
  if (rule !== undefined) throw new DeliveryRefused(name, rule);
  return text;
}

function numberIn(headers: DeliveryHeaders, name: string, min: number, max: number): number {
  const value = Number(textIn(headers, name, (text) => (WHOLE_NUMBER.test(text) ? undefined : 'must be a whole number')));
  if (value < min || value > max) throw new DeliveryRefused(name, `must be a whole number from ${min} to ${max}`);
  return value;
}
