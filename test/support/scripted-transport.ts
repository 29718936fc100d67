import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../src/core/index.js';
import { TransportError, type ProducerTransport, type TransportAnswer, type TransportRequest } from '../../src/producer/index.js';

/** A message as it was sent. */
export interface SentMessage {
  readonly topic: string;
  readonly id: string;
  readonly content: unknown;
}

/** What comes of one request. */
export type Script = (messages: readonly SentMessage[], request: TransportRequest) => TransportAnswer | Promise<TransportAnswer>;

/** A network that does what a test has written: one script for each request, and the last one from then on. */
export class ScriptedTransport implements ProducerTransport {
  readonly requests: TransportRequest[] = [];
  /** The messages of each request. */
  readonly sent: (readonly SentMessage[])[] = [];
  isClosed = false;
  private readonly scripts: Script[];

  constructor(...scripts: Script[]) {
    this.scripts = scripts;
  }

  async send(request: TransportRequest): Promise<TransportAnswer> {
    this.requests.push(request);
    const messages = messagesOf(request);
    this.sent.push(messages);
    const script = this.scripts.length > 1 ? this.scripts.shift() : this.scripts[0];
    await setImmediate();
    return (script ?? acknowledge())(messages, request);
  }

  /** What was sent, request by request: the contents. */
  get contents(): unknown[][] {
    return this.sent.map((messages) => messages.map(({ content }) => content));
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

/** A broker of one life: it gives each message the next offset of its topic, and the first one to an id that it knows. */
export function acknowledge(): Script {
  const topics = new Map<string, string[]>();
  return (messages) => {
    const items = messages.map(({ topic, id }) => {
      const ids = topics.get(topic) ?? [];
      topics.set(topic, ids);
      if (!ids.includes(id)) ids.push(id);
      return { acknowledgement: 'ACK', topic, offset: ids.indexOf(id) };
    });
    return answer(200, items.length === 1 ? items[0] : items);
  };
}

export function answer(status: number, body: unknown, headers: TransportAnswer['headers'] = {}): TransportAnswer {
  return { status, headers, body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) };
}

export const status =
  (code: number, body: unknown = { acknowledgement: 'NACK', reason: 'no' }, headers: TransportAnswer['headers'] = {}): Script =>
  () =>
    answer(code, body, headers);

/** The message never left. */
export const unreachable: Script = () => {
  throw new TransportError('connection refused (ECONNREFUSED)', false);
};

/** It left, and no answer came. */
export const cut: Script = () => {
  throw new TransportError('connection lost (ECONNRESET)', true);
};

/** No answer until the attempt is ended. */
export const silence: Script = (_messages, { signal }) =>
  new Promise((_resolve, reject) => {
    const end = (): void => reject(new TransportError('given up', true));
    if (signal.aborted) end();
    else signal.addEventListener('abort', end);
  });

function messagesOf({ path, headers, body }: TransportRequest): SentMessage[] {
  const text = body.toString();
  if (path === '/messages') return [JSON.parse(text) as SentMessage];
  if (headers['content-type'] === 'application/json') return JSON.parse(text) as SentMessage[];
  return text.split('\n').map((line) => JSON.parse(line) as SentMessage);
}

/** A clock on which every wait is over at once; it remembers how long each would have been. */
export class ImpatientClock implements Clock {
  readonly asked: number[] = [];

  now(): number {
    return Date.UTC(2026, 0, 1);
  }

  async sleep(ms: number): Promise<void> {
    this.asked.push(ms);
    await setImmediate();
  }
}
