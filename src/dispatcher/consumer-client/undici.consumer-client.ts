import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';
import { buildConnector, Client, errors, type Dispatcher } from 'undici';
import { Attempt, type AnswerHeaders } from './attempt.js';
import type { ConsumerClient, ConsumerReply, ConsumerRequest } from './consumer-client.port.js';
import { failureReason, FailureReason } from './failure-reason.js';

/**
 * The default consumer client: undici, one connection per attempt under way, kept alive between attempts.
 *
 * undici's own Pool queues and multiplexes behind one object and cannot be told to give up a connection that is still being made, so an
 * attempt that runs out of time against a silent address would leave its socket behind. Here the connections that are free wait in a list
 * per origin, and each attempt holds one of them alone, from connect to the last byte. Nothing is pipelined.
 *
 * No redirects, no decompression, no proxy: a bare undici client knows none of them, whatever the environment says.
 *
 * One rule of HTTP undici reads more strictly than the other client does: a `100 Continue` that was not asked for, and mmmq asks for none,
 * ends the attempt with a failure that says so. undici cannot be told to pass over it, as it does over every other 1xx.
 */
@Injectable()
export class UndiciConsumerClient implements ConsumerClient {
  /** The connections that no attempt holds, by origin; the one used last is taken first, so that the others can grow idle and close. */
  private readonly free = new Map<string, Connection[]>();
  private closed = false;

  post(request: ConsumerRequest): Promise<ConsumerReply> {
    if (this.closed || request.signal.aborted) return Promise.resolve({ kind: 'failure', reason: FailureReason.stopping });
    const { origin } = request.host;
    const connection = this.free.get(origin)?.pop() ?? new Connection(origin);
    const attempt = new Attempt(request, (readToItsEnd) => {
      if (readToItsEnd && !connection.isSending && !this.closed) this.keep(origin, connection);
      else void connection.destroy();
    });
    connection.post(request, attempt);
    return attempt.reply;
  }

  async close(): Promise<void> {
    this.closed = true;
    const connections = [...this.free.values()].flat();
    this.free.clear();
    await Promise.all(connections.map((connection) => connection.destroy()));
  }

  private keep(origin: string, connection: Connection): void {
    const free = this.free.get(origin);
    if (free === undefined) this.free.set(origin, [connection]);
    else free.push(connection);
  }
}

/** No time limit of its own, as the attempt has one for everything. Shared, so that TLS sessions are resumed by whichever connection is next. */
const connect = buildConnector({ timeout: 0 });

/** One undici client: at most one socket at a time, made when first needed and again after the consumer has closed it. */
class Connection {
  private readonly client: Client;
  private socket: Socket | undefined;

  constructor(origin: string) {
    this.client = new Client(origin, {
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (options, callback) => {
        // undici's types hide that its connector returns the socket, which is the only way to end one that is still connecting.
        this.socket = connect(options, callback) as unknown as Socket;
      },
    });
  }

  /** Whether a part of the last request still waits to be sent: the consumer answered early and may never read it. */
  get isSending(): boolean {
    return this.socket !== undefined && this.socket.writableLength > 0;
  }

  post({ host, path, headers, body }: ConsumerRequest, attempt: Attempt): void {
    this.client.dispatch({ method: 'POST', path: `${host.path}${path}`, headers, body }, new AnswerHandler(attempt));
  }

  async destroy(): Promise<void> {
    const destroyed = this.client.destroy();
    this.socket?.destroy();
    await destroyed;
  }
}

/** Hands what undici reads to the attempt. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  constructor(private readonly attempt: Attempt) {}

  /** undici takes an object without this method for a handler of its older kind. */
  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    // 1xx announces an answer and is none.
    if (status >= 200) this.attempt.begin(status, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.attempt.receive(chunk);
  }

  onResponseEnd(): void {
    this.attempt.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.attempt.fail(unaskedReason(error) ?? failureReason(error));
  }
}

/** undici's own words, constants of its source that quote nothing, for two faults that share a code with a connection that was closed. */
const UNASKED: ReadonlyMap<string, string> = new Map([
  ['bad response', FailureReason.unaskedContinue],
  ['bad upgrade', FailureReason.unaskedUpgrade],
]);

function unaskedReason(error: Error): string | undefined {
  return error instanceof errors.SocketError ? UNASKED.get(error.message) : undefined;
}
