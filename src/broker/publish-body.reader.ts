import type { IncomingMessage, ServerResponse } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import { Acknowledgement } from '../core/index.js';
import { PublishRefusedError } from '../message/index.js';
import { BROKER_SETTINGS, type BrokerSettings } from '../settings/index.js';
import { PendingBytes } from './pending-bytes.js';
import { answer, answerUnread, refusalAnswer } from './publish-answer.js';
import { mediaTypeRefusalOf } from './publish-headers.js';

/** The bytes of a publish. Whoever has them gives them back when the answer is written: until then they count as pending. */
export interface PublishBody {
  readonly bytes: Buffer;
  giveBack(): void;
}

const BODY_TAKEN = {
  status: 500,
  body: JSON.stringify({
    acknowledgement: Acknowledgement.NACK,
    reason:
      'something in the application has parsed the body of this publish, and its bytes are gone: let no body parser handle the route ' +
      'of the publish before BrokerModule, or create the application with { rawBody: true }',
  }),
};

/**
 * Reads the bodies of publishes, as bytes and within the limits. What it refuses it answers itself, in this order: 415 for what is not JSON
 * in UTF-8, 413 for what is larger than `message.max-bytes` (by its Content-Length before anything is read), 429 for what passes
 * `pending.max-bytes`. Of a client that goes away in mid-body nothing is left.
 */
@Injectable()
export class PublishBodyReader {
  readonly pending: PendingBytes;
  private readonly maxBytes: number;
  private readonly claimed = new WeakMap<IncomingMessage, PublishBody>();

  constructor(@Inject(BROKER_SETTINGS) settings: BrokerSettings) {
    this.maxBytes = settings.message.maxBytes;
    this.pending = new PendingBytes(settings.pending.maxBytes);
  }

  /**
   * Reads the body and keeps it for the controller, then goes on with `next`. A body parser further down finds the request read to its end
   * and leaves it alone. Nobody has to come for the body, a guard may answer: with the response everything is given back.
   */
  claim(request: IncomingMessage, response: ServerResponse, next: () => void): void {
    if (!isUnread(request)) {
      next();
      return;
    }
    this.read(request, response, (body) => {
      if (body === undefined) return;
      this.claimed.set(request, body);
      response.once('close', () => this.take(request)?.giveBack());
      next();
    });
  }

  /** The body of a request, claimed before or read now; undefined when the request was answered or the client is gone. */
  bodyOf(request: IncomingMessage & { readonly rawBody?: unknown }, response: ServerResponse): Promise<PublishBody | undefined> {
    const claimed = this.take(request);
    if (claimed !== undefined) return Promise.resolve(claimed);
    if (isUnread(request)) return new Promise((resolve) => this.read(request, response, resolve));
    if (Buffer.isBuffer(request.rawBody)) return Promise.resolve(this.keptBody(request, response, request.rawBody));
    answer(response, BODY_TAKEN);
    return Promise.resolve(undefined);
  }

  private take(request: IncomingMessage): PublishBody | undefined {
    const body = this.claimed.get(request);
    this.claimed.delete(request);
    return body;
  }

  /** @param onEnd is called once: with the body, or without one when the request was answered or the client is gone */
  private read(request: IncomingMessage, response: ServerResponse, onEnd: (body?: PublishBody) => void): void {
    const chunks: Buffer[] = [];
    let length = 0;
    const finish = (body?: PublishBody): void => {
      request.off('data', onData).off('end', onComplete).off('close', onGone);
      if (body === undefined) this.pending.giveBack(length);
      onEnd(body);
    };
    const refuse = (error: PublishRefusedError): void => {
      finish();
      answerUnread(request, response, refusalAnswer(error));
    };
    const onData = (chunk: Buffer): void => {
      const refused = this.refusalOf(length + chunk.length, chunk.length);
      if (refused !== undefined) {
        refuse(refused);
        return;
      }
      length += chunk.length;
      chunks.push(chunk);
    };
    const onComplete = (): void => {
      const [first] = chunks;
      finish(this.body(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, length)));
    };
    const onGone = (): void => finish();

    // A request that breaks off says so with an error too; unheard, it would end the process.
    request.on('error', () => undefined);
    const refused = mediaTypeRefusalOf(request) ?? this.refusalOf(Number(request.headers['content-length'] ?? 0), 0);
    if (refused === undefined) request.on('data', onData).on('end', onComplete).on('close', onGone);
    else refuse(refused);
  }

  /** The bytes that another parser read and kept. */
  private keptBody(request: IncomingMessage, response: ServerResponse, bytes: Buffer): PublishBody | undefined {
    const refused = mediaTypeRefusalOf(request) ?? this.refusalOf(bytes.length, bytes.length);
    if (refused === undefined) return this.body(bytes);
    answer(response, refusalAnswer(refused));
    return undefined;
  }

  /** Why a body of this length, with so many bytes more to keep, is refused. When it is not, the bytes are taken. */
  private refusalOf(length: number, moreBytes: number): PublishRefusedError | undefined {
    if (length > this.maxBytes) {
      return new PublishRefusedError(413, undefined, `the body is larger than message.max-bytes, which is ${this.maxBytes}`);
    }
    if (this.pending.take(moreBytes)) return undefined;
    return new PublishRefusedError(429, undefined, 'too many bytes of publishes wait for their answer in the broker; send it again later');
  }

  private body(bytes: Buffer): PublishBody {
    return { bytes, giveBack: () => this.pending.giveBack(bytes.length) };
  }
}

function isUnread(request: IncomingMessage): boolean {
  return request.readable && !request.readableDidRead;
}
