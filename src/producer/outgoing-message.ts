import { uuidv7 } from 'uuidv7';
import { MESSAGE_MAX_BYTES } from '../core/index.js';
import {
  JsonScanError,
  JsonScanner,
  MAX_SCAN_DEPTH,
  PublishRefusedError,
  readPublish,
  traceContextOf,
  type TraceContext,
} from '../message/index.js';
import { ProduceRefusedError } from './produce-refused.error.js';
import { RawJson } from './raw-json.js';

/** A message as it is sent: checked, and spelled once, so that each repetition has the same bytes. */
export interface OutgoingMessage {
  readonly topic: string;
  readonly id: string;
  /** `{"topic":…,"id":…,"key":…,"headers":…,"content":…}` */
  readonly body: Buffer;
  /** Goes as headers of the request, so those of one request share it. */
  readonly trace: TraceContext | undefined;
}

/** What can be said of a message beside its topic and content. */
export interface MessageDetails {
  readonly id?: string | undefined;
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** As `traceparent` and `tracestate` headers spell them. */
export interface TraceHeaders {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

/**
 * Makes the message and checks it by the broker's own rules. A trace that is not valid is left out, as the broker does: it costs no message.
 * @throws {ProduceRefusedError} status 400, with the member that is to blame and the rule it breaks; 413 where no broker takes as much
 */
export function outgoingMessage(topic: string, content: unknown, details: MessageDetails, traced: TraceHeaders): OutgoingMessage {
  const { id = uuidv7(), key, headers } = details;
  try {
    const body = bodyOf({ topic, id, key, headers }, content);
    // A broker cuts the connection of what is much too large, and nobody would know what has become of it.
    if (body.length > MESSAGE_MAX_BYTES)
      throw new PublishRefusedError(
        413,
        undefined,
        `the message has ${body.length} bytes, and no broker takes more than ${MESSAGE_MAX_BYTES}`,
      );
    const read = readPublish(body, {});
    return { topic: read.topic, id, body, trace: traceContextOf(traced.traceparent, traced.tracestate) };
  } catch (error) {
    if (!(error instanceof PublishRefusedError)) throw error;
    throw new ProduceRefusedError(String(topic).slice(0, 200), String(id).slice(0, 100), error, { cause: error });
  }
}

function bodyOf(members: object, content: unknown): Buffer {
  if (content instanceof RawJson) return rawBodyOf(members, content.bytes);
  try {
    return Buffer.from(JSON.stringify({ ...members, content }));
  } catch (error) {
    throw new PublishRefusedError(400, 'content', `the content cannot be made JSON: ${reasonOf(error)}`, { cause: error });
  }
}

/** The content has to be one value on its own: put in unseen, `1,"key":"k"` would be two members. */
function rawBodyOf(members: object, content: Buffer): Buffer {
  try {
    // Deeper than content may be, so that what is too deep is refused in the words of the broker.
    const json = new JsonScanner(content, MAX_SCAN_DEPTH);
    json.skipValue();
    json.expectEnd();
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error;
    throw new PublishRefusedError(400, 'content', `the content is not one JSON value: ${error.message}`, { cause: error });
  }
  return Buffer.concat([Buffer.from(`${JSON.stringify(members).slice(0, -1)},"content":`), content, Buffer.from('}')]);
}

/** Errors of a `toJSON` may be anybody's; those of JSON.stringify quote at most names of members. It is out of its range where content is too deep or too long. */
function reasonOf(error: unknown): string {
  const isOwn = error instanceof TypeError || error instanceof RangeError;
  return isOwn ? (error.message.split('\n')[0] ?? '') : 'its toJSON has thrown';
}
