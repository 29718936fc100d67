import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ConsumerFault } from '../../src/testing/index.js';

/** A request that went through, or was to: with what came of it, undefined where no answer was given. */
export interface ProxiedRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly answer: { readonly status: number; readonly body: Buffer; readonly retryAfter: string | undefined } | undefined;
}

/** Stands between a dispatcher and a consumer, over real sockets, and lets go wrong what a test asks for. */
export class FaultyProxy {
  readonly requests: ProxiedRequest[] = [];
  readonly faults: ConsumerFault[] = [];
  private readonly server: Server;

  private constructor(private readonly target: string) {
    this.server = createServer((request, response) => void this.serve(request, response));
  }

  static async before(target: string): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(target);
    proxy.server.listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bytesOf(request);
    const fault = this.faults.shift();
    const seen = { path: request.url ?? '', headers: request.headers, body };
    switch (fault?.kind) {
      case 'refused':
        this.requests.push({ ...seen, answer: undefined });
        request.socket.destroy();
        return;
      case 'timeout':
        this.requests.push({ ...seen, answer: undefined });
        // Nothing is answered; with the dispatcher the request to the consumer ends.
        await this.forward(request, body).catch(() => undefined);
        return;
      case 'answerLost':
        await this.forward(request, body);
        this.requests.push({ ...seen, answer: undefined });
        request.socket.destroy();
        return;
      case 'status':
        this.answer(response, seen, { status: fault.status, body: Buffer.from(''), retryAfter: fault.retryAfterSeconds?.toString() });
        return;
      case 'garbage':
        this.answer(response, seen, { status: 200, body: Buffer.from('<html>It works!</html>'), retryAfter: undefined });
        return;
      default:
        this.answer(response, seen, await this.forward(request, body));
    }
  }

  private answer(response: ServerResponse, seen: Omit<ProxiedRequest, 'answer'>, answer: NonNullable<ProxiedRequest['answer']>): void {
    this.requests.push({ ...seen, answer });
    const { status, body, retryAfter } = answer;
    response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end(body);
  }

  private forward(request: IncomingMessage, body: Buffer): Promise<NonNullable<ProxiedRequest['answer']>> {
    return new Promise((resolve, reject) => {
      const { 'transfer-encoding': _, connection: __, host: ___, ...headers } = request.headers;
      const forwarded = httpRequest(`${this.target}${request.url}`, { method: 'POST', headers, agent: false }, (answer) => {
        bytesOf(answer).then(
          (bytes) => resolve({ status: answer.statusCode ?? 0, body: bytes, retryAfter: answer.headers['retry-after'] }),
          reject,
        );
      });
      forwarded.on('error', reject);
      request.socket.once('close', () => forwarded.destroy());
      forwarded.end(body);
    });
  }
}

async function bytesOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
