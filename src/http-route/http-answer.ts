import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Acknowledgement } from '../core/index.js';

/** What a client is told. The body is JSON, spelled out. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
  readonly headers?: OutgoingHttpHeaders;
}

const RETRY_AFTER_SECONDS = '1';

/** Why a request is refused for what it is. */
export interface Refusal {
  readonly status: number;
  /** The member or header that is to blame, where it is one. */
  readonly field?: string | undefined;
  readonly reason: string;
}

/** The answer to a request that was refused; to one that came too early with the time to wait. */
export function refusalAnswer({ status, field, reason }: Refusal): HttpAnswer {
  const headers = status === 429 ? { 'retry-after': RETRY_AFTER_SECONDS } : {};
  return { status, body: JSON.stringify({ acknowledgement: Acknowledgement.NACK, field, reason }), headers };
}

/** What is taken in from a client that goes on sending after it was refused: so much and so long, then the connection is cut. */
const DISCARD_MAX_BYTES = 16 * 1024 * 1024;
const DISCARD_MAX_MS = 5000;

/** Writes the answer in one go. Does nothing where somebody else has answered or the client is gone. */
export function answer(response: ServerResponse, { status, body, headers }: HttpAnswer): void {
  if (!canAnswer(response)) return;
  response.writeHead(status, headersOf(body, headers)).end(body);
}

/**
 * Answers a request whose body was not read to its end, and closes the connection, as nobody can tell any more where the next request
 * begins. A connection that is closed while data arrives is reset, and a reset can destroy the answer before the client has read it. So the
 * answer goes out whole at once, and what still comes is thrown away for a while before the connection is closed.
 */
export function answerUnread(request: IncomingMessage, response: ServerResponse, { status, body, headers }: HttpAnswer): void {
  if (!canAnswer(response)) return;
  response.writeHead(status, { ...headersOf(body, headers), connection: 'close' });
  response.write(body);

  let discardedBytes = 0;
  const discard = (chunk: Buffer): void => {
    discardedBytes += chunk.length;
    if (discardedBytes > DISCARD_MAX_BYTES) finish();
  };
  const finish = (): void => {
    clearTimeout(timer);
    request.off('data', discard).off('end', finish).off('close', finish);
    response.end();
  };
  const timer = setTimeout(finish, DISCARD_MAX_MS);
  request.on('data', discard).on('end', finish).on('close', finish).resume();
}

function canAnswer(response: ServerResponse): boolean {
  return !response.headersSent && !response.writableEnded && !response.destroyed;
}

function headersOf(body: string, headers: OutgoingHttpHeaders | undefined): OutgoingHttpHeaders {
  return { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers };
}
