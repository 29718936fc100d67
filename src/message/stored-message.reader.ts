import { isUtf8 } from 'node:buffer';
import { JsonScanError, JsonScanner, MAX_SCAN_DEPTH } from './json-scanner.js';
import { textOf } from './json-text.js';
import { headerNameProblem, headerValueProblem, idProblem, keyProblem } from './member-rules.js';
import { traceContextOf } from './trace-context.js';

/**
 * What a delivery needs of a stored message. A member that is missing, or that breaks its rule because another program wrote the log, is
 * not there; so whatever is there can be sent as a header.
 */
export interface StoredMessage {
  readonly topic?: string;
  readonly id?: string;
  readonly key?: string;
  readonly headers?: ReadonlyMap<string, string>;
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** The exact bytes of the content, a view. */
  readonly content?: Buffer;
  /** Epoch milliseconds of the append. */
  readonly timestamp?: number;
}

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
/** More characters than a whole number has that a double holds exactly; whatever is cut behind them is none. */
const MAX_NUMBER_LENGTH = 17;

/** Reads a stored message, without strictness about its members. @returns undefined when the bytes are no JSON object in UTF-8 */
export function readStored(payload: Buffer): StoredMessage | undefined {
  if (!isUtf8(payload)) return undefined;
  try {
    return new StoredMessageReader(payload).read();
  } catch (error) {
    if (error instanceof JsonScanError) return undefined;
    throw error;
  }
}

class StoredMessageReader {
  private readonly json: JsonScanner;

  constructor(private readonly payload: Buffer) {
    this.json = new JsonScanner(payload, MAX_SCAN_DEPTH);
  }

  read(): StoredMessage {
    const { json } = this;
    const message: { -readonly [Name in keyof StoredMessage]: StoredMessage[Name] } = {};
    let traceparent: string | undefined;
    let tracestate: string | undefined;
    json.enterObject();
    while (json.nextMember()) {
      switch (textOf(this.payload, json.nameStart, json.nameEnd)) {
        case 'topic': {
          const topic = json.peek() === OPEN_BRACE ? this.readTexts().get('name') : this.readText();
          if (topic !== undefined) message.topic = topic;
          break;
        }
        case 'content':
          json.skipValue();
          message.content = this.payload.subarray(json.valueStart, json.valueEnd);
          break;
        case 'id': {
          const id = this.readText();
          if (id !== undefined && idProblem(id) === undefined) message.id = id;
          break;
        }
        case 'key': {
          const key = this.readText();
          if (key !== undefined && keyProblem(key) === undefined) message.key = key;
          break;
        }
        case 'headers':
          if (json.peek() === OPEN_BRACE) message.headers = this.readHeaders();
          else json.skipValue();
          break;
        case 'traceparent':
          traceparent = this.readText();
          break;
        case 'tracestate':
          tracestate = this.readText();
          break;
        case 'timestamp': {
          const timestamp = this.readWholeNumber();
          if (timestamp !== undefined) message.timestamp = timestamp;
          break;
        }
        default:
          json.skipValue();
      }
    }
    json.expectEnd();
    return Object.assign(message, traceContextOf(traceparent, tracestate));
  }

  private readHeaders(): ReadonlyMap<string, string> {
    const headers = this.readTexts();
    for (const [name, value] of headers) {
      if (headerNameProblem(name) !== undefined || headerValueProblem(value) !== undefined) headers.delete(name);
    }
    return headers;
  }

  /** The members of an object that are strings. */
  private readTexts(): Map<string, string> {
    const { json } = this;
    const texts = new Map<string, string>();
    json.enterObject();
    while (json.nextMember()) {
      const name = textOf(this.payload, json.nameStart, json.nameEnd);
      const text = this.readText();
      if (text !== undefined) texts.set(name, text);
    }
    return texts;
  }

  private readWholeNumber(): number | undefined {
    const { json } = this;
    json.skipValue();
    const value = Number(this.payload.toString('latin1', json.valueStart, Math.min(json.valueEnd, json.valueStart + MAX_NUMBER_LENGTH)));
    return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  }

  private readText(): string | undefined {
    const { json } = this;
    const isText = json.peek() === QUOTE;
    json.skipValue();
    return isText ? textOf(this.payload, json.valueStart, json.valueEnd) : undefined;
  }
}
