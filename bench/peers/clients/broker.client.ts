import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Pool } from 'undici';
import type { Client, Committed, ConnectTo } from '../generator/client.js';
import { numberedText, numbersIn } from '../generator/numbered-message.js';

const ACK = '{"acknowledgement":"ACK"}';
const JSON_BODY = { 'content-type': 'application/json' };
const NDJSON_BODY = { 'content-type': 'application/x-ndjson' };
/** Behind the last request of all comes no next one. Far longer than any commit takes, so that it is of no account before the end. */
const LAST_VERDICT_MS = 1_000;

/**
 * The broker by an ordinary HTTP client, a connection for each publish under way. The consumer is an HTTP server here. The next request of a
 * dispatcher says that the verdict on the one before is committed: it sends none before that.
 */
class BrokerClient implements Client {
  private readonly consumer: Server;
  private committed: Committed = () => {};
  private delivered: readonly number[] = [];
  private readonly lastVerdict = setTimeout(() => this.committed(this.delivered), LAST_VERDICT_MS);

  constructor(
    private readonly pool: Pool,
    private readonly consumerPort: number | undefined,
  ) {
    this.consumer = createServer((request, response) => void this.take(request, response));
    this.consumer.keepAliveTimeout = 0;
  }

  publish(number: number): Promise<void> {
    return this.post('/messages', JSON_BODY, numberedText(number));
  }

  publishMany(numbers: readonly number[]): Promise<void> {
    return this.post('/messages/batch', NDJSON_BODY, numbers.map(numberedText).join('\n'));
  }

  async consume(committed: Committed): Promise<void> {
    this.committed = committed;
    await once(this.consumer.listen(this.consumerPort, '127.0.0.1'), 'listening');
  }

  /** The broker keeps its messages; all of them were delivered. */
  async remove(): Promise<void> {
    await this.pool.close();
  }

  private async post(path: string, headers: Record<string, string>, body: string): Promise<void> {
    const { statusCode, body: answer } = await this.pool.request({ method: 'POST', path, headers, body });
    const text = await answer.text();
    if (statusCode !== 200) throw new Error(`a publish failed: ${statusCode} ${text}`);
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.committed(this.delivered);
    this.lastVerdict.refresh();
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    this.delivered = numbersIn(Buffer.concat(chunks).toString('latin1'));
    const answer = request.url === '/messages' ? ACK : `[${this.delivered.map(() => ACK).join()}]`;
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer);
  }
}

export const connectTo: ConnectTo = ({ port, consumerPort }, concurrency) => {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: concurrency });
  return Promise.resolve(new BrokerClient(pool, consumerPort));
};
