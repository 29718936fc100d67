import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Host } from '../../src/core/index.js';

export interface ReceivedMessage {
  readonly url: string;
  readonly topic: string;
  readonly offset: number;
  readonly attempt: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What a consumer answers: a status and a body, or nothing until the test says so. */
export type TestAnswer = (message: ReceivedMessage, response: ServerResponse) => void;

export const ack: TestAnswer = (_message, response) => answer(response, 200, '{"acknowledgement":"ACK"}');
export const nack: TestAnswer = (_message, response) => answer(response, 200, '{"acknowledgement":"NACK"}');
export const status =
  (code: number, headers: Record<string, string> = {}): TestAnswer =>
  (_message, response) =>
    answer(response, code, 'no', headers);
/** An answer that depends on the message. */
export const choose =
  (choice: (message: ReceivedMessage) => TestAnswer): TestAnswer =>
  (message, response) =>
    choice(message)(message, response);
/** The request stays open. */
export const silence: TestAnswer = () => {};

export function answer(response: ServerResponse, code: number, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(code, headers).end(body);
}

/** A real consumer on 127.0.0.1. It answers with the next one of its answers, and with the last one from then on; ACK without any. */
export class TestConsumer {
  readonly received: ReceivedMessage[] = [];
  private readonly server: Server;
  private readonly waiting: (() => void)[] = [];

  private constructor(private readonly answers: TestAnswer[]) {
    this.server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { url = '', headers } = request;
        const [offset, attempt] = [Number(headers['mmmq-offset']), Number(headers['mmmq-attempt'])];
        const message = { url, topic: String(headers['mmmq-topic']), offset, attempt, headers, body: Buffer.concat(chunks).toString() };
        this.received.push(message);
        for (const wake of this.waiting.splice(0)) wake();
        const next = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
        (next ?? ack)(message, response);
      });
    });
  }

  static start(...answers: TestAnswer[]): Promise<TestConsumer> {
    return TestConsumer.startOn(0, ...answers);
  }

  static async startOn(port: number, ...answers: TestAnswer[]): Promise<TestConsumer> {
    const consumer = new TestConsumer(answers);
    consumer.server.listen(port, '127.0.0.1');
    await once(consumer.server, 'listening');
    return consumer;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get host(): Host {
    return Host.of(this.url);
  }

  /** Waits until what has been received fulfils the condition. */
  async until(condition: (received: readonly ReceivedMessage[]) => boolean): Promise<readonly ReceivedMessage[]> {
    while (!condition(this.received)) await new Promise<void>((resolve) => this.waiting.push(resolve));
    return this.received;
  }

  /** The offsets in the order in which they came, resends included. */
  get offsets(): number[] {
    return this.received.map(({ offset }) => offset);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}
