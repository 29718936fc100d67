import { StringDecoder } from 'node:string_decoder';
import { deadLetterTopic } from '../core/index.js';
import { isJson } from './is-json.js';
import { Message } from './message.js';
import { MAX_CONTENT_DEPTH } from './publish.reader.js';

/** A message that a dispatcher gives up, and why. */
export interface DeadLetter {
  /** Name of the dispatcher. */
  readonly dispatcher: string;
  /** Where the message is: its topic and offset. */
  readonly topic: string;
  readonly offset: number;
  /** How often it was sent. */
  readonly attempts: number;
  readonly reason: string;
  /** The consumer's last answer, where there was one. */
  readonly answer: { readonly status: number; readonly body: Buffer } | undefined;
  /** The stored bytes of the message. */
  readonly message: Buffer;
}

/** So much is kept of a consumer's answer, in bytes of UTF-8. */
export const MAX_ANSWER_BODY_BYTES = 4096;

/** So much is kept of bytes that are no JSON: as a string they can grow sixfold, and a message must stay below 8 MiB. They remain where they are. */
const MAX_FOREIGN_BYTES = 1024 * 1024;

/** A stored message is an object around its content. */
const MAX_STORED_DEPTH = MAX_CONTENT_DEPTH + 1;

/**
 * Makes the message for the topic `dlq.<dispatcher>`. Its content is
 *
 *     {"topic":…,"offset":…,"attempts":…,"reason":…,"answer":{"status":…,"body":…},"message":<the stored bytes>}
 *
 * without `answer` where there was none. The stored bytes stand in it as they are; only when they are no JSON (another program wrote them)
 * they are given as a string, so that a dead letter is always JSON itself.
 */
export function deadLetterOf({ dispatcher, topic, offset, attempts, reason, answer, message }: DeadLetter): Message {
  const ownTopic = deadLetterTopic(dispatcher);
  const members = {
    topic,
    offset,
    attempts,
    reason,
    answer: answer && { status: answer.status, body: leadingText(answer.body, MAX_ANSWER_BODY_BYTES) },
  };
  const opening = Buffer.from(`{"topic":${JSON.stringify(ownTopic)},"content":`);
  const description = Buffer.from(`${JSON.stringify(members).slice(0, -1)},"message":`);
  const original = isJson(message, MAX_STORED_DEPTH) ? message : Buffer.from(JSON.stringify(leadingText(message, MAX_FOREIGN_BYTES)));
  const object = Buffer.concat([opening, description, original, Buffer.from('}}')]);
  return new Message({ topic: ownTopic, id: undefined, content: object.subarray(opening.length, object.length - 1), object });
}

/**
 * The text at the beginning of some bytes, `maxBytes` of UTF-8 at most. No character is split; bytes that are no UTF-8 become U+FFFD, which
 * can be longer than what it stands for, hence the second cut.
 */
function leadingText(bytes: Buffer, maxBytes: number): string {
  const text = bytes.length <= maxBytes ? bytes.toString() : wholeCharacters(bytes.subarray(0, maxBytes));
  return Buffer.byteLength(text) <= maxBytes ? text : wholeCharacters(Buffer.from(text).subarray(0, maxBytes));
}

/** Without the character that the end cuts through, if it does: the decoder keeps that one back for more bytes. */
function wholeCharacters(bytes: Buffer): string {
  return new StringDecoder('utf8').write(bytes);
}
