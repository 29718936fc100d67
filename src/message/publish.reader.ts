import { isUtf8 } from 'node:buffer';
import { DEAD_LETTER_PREFIX, isReservedName, topicProblem } from '../core/index.js';
import { JsonScanError, JsonScanner } from './json-scanner.js';
import { textOf } from './json-text.js';
import { headerNameProblem, headerValueProblem, idProblem, keyProblem, MAX_HEADERS, MAX_HEADERS_BYTES } from './member-rules.js';
import { Message } from './message.js';
import { printable } from './printable.js';
import { PublishRefusedError } from './publish-refused.error.js';
import { traceContextOf } from './trace-context.js';

/** The request headers that a publish is read with, as they came; undefined where they did not. */
export interface PublishHeaders {
  readonly idempotencyKey?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

/** An array or object that is itself the content is the first level. */
export const MAX_CONTENT_DEPTH = 512;

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const LOWER_N = 0x6e;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/**
 * Reads the body of one publish: `{"topic":"order.created","content":…}` and perhaps `id`, `key`, `headers`. Its bytes are looked at once
 * and kept; the message's buffers are views into them.
 * @throws {PublishRefusedError} status 400, with the member that is to blame and the rule it breaks
 */
export function readPublish(body: Buffer, headers: PublishHeaders): Message {
  checkEncoding(body);
  const members = new PublishReader(body).read();
  const headerId = headers.idempotencyKey;
  if (headerId !== undefined) {
    const rule = idProblem(headerId);
    if (rule !== undefined) refuse('id', `${rule} (it came as Idempotency-Key)`);
    if (members.id !== undefined && members.id !== headerId) refuse('id', 'the member "id" and the header Idempotency-Key differ');
  }
  return new Message({
    topic: members.topic,
    id: members.id ?? headerId,
    content: members.content,
    object: members.object,
    addedId: members.id === undefined ? headerId : undefined,
    trace: traceContextOf(headers.traceparent, headers.tracestate),
  });
}

interface PublishMembers {
  readonly topic: string;
  readonly id: string | undefined;
  readonly content: Buffer;
  readonly object: Buffer;
}

/** Goes through the members in the order in which they stand, and stops at the first that breaks a rule. */
class PublishReader {
  private readonly json: JsonScanner;
  private topic: string | undefined;
  private content: Buffer | undefined;
  private id: string | undefined;
  private key: string | undefined;
  private headers: ReadonlySet<string> | undefined;

  constructor(private readonly body: Buffer) {
    this.json = new JsonScanner(body, MAX_CONTENT_DEPTH);
  }

  read(): PublishMembers {
    try {
      return this.readObject();
    } catch (error) {
      if (error instanceof JsonScanError)
        refuse(undefined, error.kind === 'depth' ? `the body ${error.message}` : `the body is not JSON: ${error.message}`);
      throw error;
    }
  }

  private readObject(): PublishMembers {
    const { json } = this;
    const first = json.peek();
    if (first === -1) refuse(undefined, 'the body is empty; send a JSON object with "topic" and "content"');
    if (first !== OPEN_BRACE) {
      json.skipValue();
      json.expectEnd();
      refuse(undefined, 'the body is a JSON object with "topic" and "content", nothing else');
    }
    const start = json.position;
    json.enterObject();
    while (json.nextMember()) this.readMember(textOf(this.body, json.nameStart, json.nameEnd));
    const end = json.position;
    json.expectEnd();
    if (this.topic === undefined) refuse('topic', 'the member "topic" is missing');
    if (this.content === undefined) refuse('content', 'the member "content" is missing');
    return { topic: this.topic, id: this.id, content: this.content, object: this.body.subarray(start, end) };
  }

  private readMember(name: string): void {
    switch (name) {
      case 'topic':
        this.refuseSecond(name, this.topic);
        this.topic = this.readTopic();
        return;
      case 'content':
        this.refuseSecond(name, this.content);
        this.content = this.readContent();
        return;
      case 'id':
        this.refuseSecond(name, this.id);
        this.id = this.readText(name, 'an id is a string');
        refuseIf(name, idProblem(this.id));
        return;
      case 'key':
        this.refuseSecond(name, this.key);
        this.key = this.readText(name, 'a key is a string');
        refuseIf(name, keyProblem(this.key));
        return;
      case 'headers':
        this.refuseSecond(name, this.headers);
        this.headers = this.readHeaders();
        return;
      default:
        refuse(printable(name), `"${printable(name)}" is no member of a message; it has "topic", "content", "id", "key" and "headers"`);
    }
  }

  private refuseSecond(name: string, value: unknown): void {
    if (value !== undefined) refuse(name, `the member "${name}" is there twice`);
  }

  private readTopic(): string {
    const topic = this.json.peek() === OPEN_BRACE ? this.readTopicObject() : this.readText('topic', 'a topic is a string');
    if (isReservedName(topic)) {
      refuse(
        'topic',
        `a topic that begins with "${DEAD_LETTER_PREFIX}", in any case of its letters, is the broker's own and takes no publish`,
      );
    }
    refuseIf('topic', topicProblem(topic));
    return topic;
  }

  /** The older form, `{"name":"order.created"}`. */
  private readTopicObject(): string {
    const { json } = this;
    let topic: string | undefined;
    json.enterObject();
    while (json.nextMember()) {
      const name = textOf(this.body, json.nameStart, json.nameEnd);
      if (name !== 'name') refuse('topic', `"${printable(name)}" is no member of a topic; as an object it has "name" alone`);
      if (topic !== undefined) refuse('topic', 'the member "name" is there twice');
      topic = this.readText('topic', 'the name of a topic is a string');
    }
    return topic ?? refuse('topic', 'the member "name" is missing');
  }

  private readContent(): Buffer {
    const { json } = this;
    const isNull = json.peek() === LOWER_N;
    try {
      json.skipValue();
    } catch (error) {
      if (error instanceof JsonScanError && error.kind === 'depth') refuse('content', `the content ${error.message}`);
      throw error;
    }
    if (isNull) refuse('content', 'the content is any JSON but null');
    return this.body.subarray(json.valueStart, json.valueEnd);
  }

  private readHeaders(): ReadonlySet<string> {
    const { json } = this;
    if (json.peek() !== OPEN_BRACE) refuse('headers', 'headers are an object of strings');
    const names = new Set<string>();
    let bytes = 0;
    json.enterObject();
    while (json.nextMember()) {
      const name = textOf(this.body, json.nameStart, json.nameEnd);
      const rule = headerNameProblem(name);
      if (rule !== undefined) refuse('headers', `${rule}, not "${printable(name)}"`);
      if (names.has(name)) refuse('headers', `the header "${name}" is there twice`);
      names.add(name);
      if (names.size > MAX_HEADERS) refuse('headers', `there are at most ${MAX_HEADERS} headers`);
      const value = this.readText('headers', 'a header value is a string');
      const valueRule = headerValueProblem(value);
      if (valueRule !== undefined) refuse('headers', `${valueRule}; "${name}" has one`);
      bytes += name.length + Buffer.byteLength(value);
      if (bytes > MAX_HEADERS_BYTES) refuse('headers', `names and values have at most ${MAX_HEADERS_BYTES} bytes of UTF-8 together`);
    }
    return names;
  }

  private readText(field: string, rule: string): string {
    if (this.json.peek() !== QUOTE) refuse(field, rule);
    this.json.skipValue();
    return textOf(this.body, this.json.valueStart, this.json.valueEnd);
  }
}

/** Before anything is read: a decoder would repair wrong bytes in silence, and what is stored has to be what was meant. */
function checkEncoding(body: Buffer): void {
  if (BYTE_ORDER_MARK.every((byte, index) => body[index] === byte)) {
    refuse(undefined, 'the body begins with a byte order mark; send UTF-8 without one');
  }
  if (!isUtf8(body)) refuse(undefined, 'the body is not valid UTF-8');
}

function refuseIf(field: string, rule: string | undefined): void {
  if (rule !== undefined) refuse(field, rule);
}

function refuse(field: string | undefined, reason: string): never {
  throw new PublishRefusedError(400, field, reason);
}
