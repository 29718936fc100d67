import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Delivery {
  readonly topic: string;
  readonly offset: number;
  readonly attempt: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Answer = { readonly status?: number; readonly body: string; readonly headers?: Record<string, string> };

export const ACK: Answer = { body: '{"acknowledgement":"ACK"}' };
export const NACK: Answer = { body: '{"acknowledgement":"NACK"}' };

async function answerWith(answer: Answer | Promise<Answer>, response: ServerResponse): Promise<void> {
  const { status = 200, body, headers } = await answer;
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(body);
}

/** A consumer on a real socket that keeps what it was sent and answers as the test says, ACK unless told otherwise. */
export class RecordingConsumer {
  readonly deliveries: Delivery[] = [];
  private waiting: (() => void)[] = [];

  private constructor(
    private readonly server: Server,
    public answer: (delivery: Delivery) => Answer | Promise<Answer>,
  ) {}

  static async start(answer: (delivery: Delivery) => Answer | Promise<Answer> = () => ACK, port = 0): Promise<RecordingConsumer> {
    const server = createServer();
    const consumer = new RecordingConsumer(server, answer);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { headers } = request;
        const delivery = {
          topic: String(headers['mmmq-topic']),
          offset: Number(headers['mmmq-offset']),
          attempt: Number(headers['mmmq-attempt']),
          headers,
          body: Buffer.concat(chunks).toString(),
        };
        consumer.deliveries.push(delivery);
        for (const wake of consumer.waiting.splice(0)) wake();
        void answerWith(consumer.answer(delivery), response);
      });
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return consumer;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Waits until what has arrived fulfils the condition. */
  async until(condition: (deliveries: readonly Delivery[]) => boolean): Promise<readonly Delivery[]> {
    while (!condition(this.deliveries)) await new Promise<void>((resolve) => this.waiting.push(resolve));
    return this.deliveries;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
