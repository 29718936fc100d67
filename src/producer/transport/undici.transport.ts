import { Pool, type Dispatcher } from 'undici';
import type { Host } from '../../core/index.js';
import { TransportError } from './transport.error.js';
import type { ProducerTransport, TransportAnswer, TransportRequest } from './producer-transport.port.js';

/** The largest answer that a broker gives has one line for each of 10,000 messages. Whatever answers more is no broker. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export interface UndiciTransportOptions {
  readonly connections: number;
  /** How long a connection may take to be made, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Stands in for the pool; it belongs to whoever made it. */
  readonly agent?: Dispatcher | undefined;
}

/** The network: undici, with connections that are kept alive. One request at a time on each: nothing is pipelined. */
export class UndiciTransport implements ProducerTransport {
  private readonly pool: Pool | undefined;
  private readonly dispatcher: Dispatcher;

  constructor(
    private readonly host: Host,
    { connections, connectTimeoutMs, agent }: UndiciTransportOptions,
  ) {
    // The attempt has a deadline for everything; only a connection that is still being made is not the attempt's to end.
    const make = (): Pool =>
      new Pool(host.origin, { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: connectTimeoutMs } });
    this.pool = agent === undefined ? make() : undefined;
    this.dispatcher = agent ?? (this.pool as Pool);
  }

  send({ path, headers, body, signal }: TransportRequest): Promise<TransportAnswer> {
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(signal, resolve, reject);
      const { origin, path: base } = this.host;
      try {
        this.dispatcher.dispatch({ origin, method: 'POST', path: `${base}${path}`, headers: { ...headers }, body }, exchange);
      } catch (error) {
        exchange.fail(reasonOf(error), error);
      }
    });
  }

  async close(): Promise<void> {
    await this.pool?.destroy();
  }
}

/** One request and what comes of it, once. What comes behind the outcome is ignored. */
class Exchange implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | undefined;
  private isSettled = false;
  private status = 0;
  private headers: TransportAnswer['headers'] = {};
  private chunks: Buffer[] = [];
  private bytes = 0;

  constructor(
    private readonly signal: AbortSignal,
    private readonly resolve: (answer: TransportAnswer) => void,
    private readonly reject: (error: TransportError) => void,
  ) {
    if (signal.aborted) this.onAbort();
    else signal.addEventListener('abort', this.onAbort);
  }

  /** There is a connection, and the next thing is the request on it. Before this, nothing was written. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.isSettled) controller.abort(new Error('given up'));
    else this.controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // 1xx announces an answer and is none.
    if (status < 200) return;
    this.status = status;
    this.headers = headers;
    if (Number(headers['content-length']) > MAX_ANSWER_BYTES) this.failAsTooLarge();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isSettled) return;
    this.bytes += chunk.length;
    if (this.bytes > MAX_ANSWER_BYTES) this.failAsTooLarge();
    else this.chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (this.settle()) this.resolve({ status: this.status, headers: this.headers, body: Buffer.concat(this.chunks) });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(reasonOf(error), error);
  }

  fail(reason: string, cause?: unknown): void {
    if (!this.settle()) return;
    this.reject(new TransportError(reason, this.controller !== undefined, cause === undefined ? undefined : { cause }));
    // Of no effect where the exchange is over. It ends the connection, on which nobody could tell one answer from the next.
    this.controller?.abort(new Error(reason));
  }

  private failAsTooLarge(): void {
    this.fail(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
  }

  private readonly onAbort = (): void => this.fail('given up');

  private settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.signal.removeEventListener('abort', this.onAbort);
    return true;
  }
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'connection lost'],
  ['EPIPE', 'connection lost'],
  ['UND_ERR_SOCKET', 'connection lost'],
  ['UND_ERR_CONNECT_TIMEOUT', 'no connection in time'],
  ['ENOTFOUND', 'name not found'],
]);
const CODE = /^[A-Z][A-Z0-9_]{0,63}$/;

/** Words and the code; never the message of an error, which may quote what was sent. */
function reasonOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  if (typeof code !== 'string' || !CODE.test(code)) return 'the request failed';
  return `${WORDS.get(code) ?? 'the request failed'} (${code})`;
}
