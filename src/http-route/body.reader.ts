import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Acknowledgement } from '../core/index.js';
import { BodyBuffer } from './body-buffer.js';
import { answer, answerUnread, type HttpAnswer, type Refusal, refusalAnswer } from './http-answer.js';
import { mediaTypeRefusalOf } from './media-type.js';
import { MAX_PENDING_HEADER_BYTES, MAX_PENDING_REQUESTS, PendingRequests } from './pending-requests.js';

/** The bytes of a request. Whoever has them gives them back, once, when the answer is written: until then the request counts as pending. */
export interface RequestBody {
  readonly bytes: Buffer;
  /** Counts what the request takes beside its bytes, until they are given back. @returns false, and takes nothing, when that is too much */
  takeMore(bytes: number): boolean;
  giveBack(): void;
}

/** What a route takes as its body. */
export interface BodyRule {
  readonly mediaTypes: readonly string[];
  readonly maxBytes: number;
  /** The setting that says so. */
  readonly setting: string;
}

export const JSON_TYPE = 'application/json';
export const NDJSON_TYPE = 'application/x-ndjson';

/** How the requests of a reader are called in what their clients are told. */
export interface BodyReaderWords {
  /** One of them: `publish`. */
  readonly one: string;
  /** Several: `publishes`. */
  readonly many: string;
  /** Where they wait for their answer: `the broker`. */
  readonly place: string;
  /** The Nest module that has the routes. */
  readonly module: string;
}

export interface BodyReaderOptions {
  /** `POST <path>` */
  readonly single: BodyRule;
  /** `POST <path>/batch` */
  readonly batch: BodyRule;
  /** So many bytes of bodies may wait for their answer at once. */
  readonly pendingMaxBytes: number;
  readonly words: BodyReaderWords;
}

/**
 * Reads the bodies of a route and its batch route, as bytes and within the limits. What it refuses it answers itself, in this order: 415 for
 * what is not of the route's type in UTF-8, 413 for what is larger than it takes (by its Content-Length before anything is read), 429 for what
 * passes `pendingMaxBytes`, {@link MAX_PENDING_REQUESTS} or {@link MAX_PENDING_HEADER_BYTES}. Of a client that goes away in mid-body nothing is left.
 */
export class BodyReader {
  readonly pending: PendingRequests;
  readonly single: BodyRule;
  readonly batch: BodyRule;
  readonly words: BodyReaderWords;
  /** The claimed bodies that nobody came for yet, by their connection. */
  private readonly claimed = new WeakMap<Socket, Map<IncomingMessage, RequestBody>>();

  constructor({ single, batch, pendingMaxBytes, words }: BodyReaderOptions) {
    this.single = single;
    this.batch = batch;
    this.pending = new PendingRequests(pendingMaxBytes);
    this.words = words;
  }

  /**
   * Reads the body and keeps it for the controller, then goes on with `next`. A body parser further down finds the request read to its end
   * and leaves it alone. Nobody has to come for the body, a guard may answer: with the response everything is given back.
   */
  claim(request: IncomingMessage, response: ServerResponse, rule: BodyRule, next: () => void): void {
    if (!isUnread(request)) {
      next();
      return;
    }
    this.read(request, response, rule, (body) => {
      if (body === undefined) return;
      this.claimedOn(request.socket).set(request, body);
      response.once('close', () => this.take(request)?.giveBack());
      next();
    });
  }

  /** A response that waits for its turn on the connection is not told when the client goes away, so the connection is asked too. */
  private claimedOn(socket: Socket): Map<IncomingMessage, RequestBody> {
    const before = this.claimed.get(socket);
    if (before !== undefined) return before;
    const bodies = new Map<IncomingMessage, RequestBody>();
    this.claimed.set(socket, bodies);
    socket.once('close', () => {
      for (const request of bodies.keys()) this.take(request)?.giveBack();
    });
    return bodies;
  }

  /** The body of a request, claimed before or read now; undefined when the request was answered or the client is gone. */
  bodyOf(
    request: IncomingMessage & { readonly rawBody?: unknown },
    response: ServerResponse,
    rule: BodyRule,
  ): Promise<RequestBody | undefined> {
    const claimed = this.take(request);
    if (claimed !== undefined) return Promise.resolve(claimed);
    if (isUnread(request)) return new Promise((resolve) => this.read(request, response, rule, resolve));
    if (Buffer.isBuffer(request.rawBody)) return Promise.resolve(this.keptBody(request, response, rule, request.rawBody));
    answer(response, this.bodyTaken());
    return Promise.resolve(undefined);
  }

  private take(request: IncomingMessage): RequestBody | undefined {
    const bodies = this.claimed.get(request.socket);
    const body = bodies?.get(request);
    bodies?.delete(request);
    return body;
  }

  /** @param onEnd is called once: with the body, or without one when the request was answered or the client is gone */
  private read(request: IncomingMessage, response: ServerResponse, rule: BodyRule, onEnd: (body?: RequestBody) => void): void {
    const announcedBytes = Number(request.headers['content-length'] ?? 0);
    const received = new BodyBuffer(announcedBytes > 0 ? announcedBytes : rule.maxBytes);
    const finish = (body?: RequestBody): void => {
      request.off('data', onData).off('end', onComplete).off('close', onGone);
      if (body === undefined) this.pending.giveBackBytes(received.length);
      onEnd(body);
    };
    const refuse = (refusal: Refusal): void => {
      finish();
      answerUnread(request, response, refusalAnswer(refusal));
    };
    const onData = (chunk: Buffer): void => {
      const refused = this.refusalOf(rule, received.length + chunk.length, chunk.length);
      if (refused === undefined) received.append(chunk);
      else refuse(refused);
    };
    const onComplete = (): void => {
      const body = this.begin(request, received.bytes);
      finish(body);
      if (body === undefined) answer(response, refusalAnswer(this.tooMany()));
    };
    const onGone = (): void => finish();

    const refused = mediaTypeRefusalOf(request, rule.mediaTypes) ?? this.refusalOf(rule, announcedBytes, 0);
    if (refused === undefined) request.on('data', onData).on('end', onComplete).on('close', onGone);
    else refuse(refused);
  }

  /** The bytes that another parser read and kept. */
  private keptBody(request: IncomingMessage, response: ServerResponse, rule: BodyRule, bytes: Buffer): RequestBody | undefined {
    const refused = mediaTypeRefusalOf(request, rule.mediaTypes) ?? this.refusalOf(rule, bytes.length, bytes.length);
    const body = refused === undefined ? this.begin(request, bytes) : undefined;
    if (body !== undefined) return body;
    if (refused === undefined) this.pending.giveBackBytes(bytes.length);
    answer(response, refusalAnswer(refused ?? this.tooMany()));
    return undefined;
  }

  /** Why a body of this length, with so many bytes more to keep, is refused. When it is not, the bytes are taken. */
  private refusalOf(rule: BodyRule, length: number, moreBytes: number): Refusal | undefined {
    if (length > rule.maxBytes) return { status: 413, reason: `the body is larger than ${rule.setting}, which is ${rule.maxBytes}` };
    return this.pending.takeBytes(moreBytes) ? undefined : this.tooManyBytes();
  }

  /** The request, there whole and its bytes taken; undefined when there are too many. */
  private begin({ rawHeaders }: IncomingMessage, bytes: Buffer): RequestBody | undefined {
    // One byte each: Node.js reads headers as Latin-1.
    const headerBytes = rawHeaders.reduce((sum, text) => sum + text.length, 0);
    if (!this.pending.begin(headerBytes)) return undefined;
    let takenBytes = bytes.length;
    return {
      bytes,
      takeMore: (moreBytes) => {
        const isTaken = this.pending.takeBytes(moreBytes);
        if (isTaken) takenBytes += moreBytes;
        return isTaken;
      },
      giveBack: () => this.pending.end(takenBytes, headerBytes),
    };
  }

  tooManyBytes(): Refusal {
    const { many, place } = this.words;
    return { status: 429, reason: `too many bytes of ${many} wait for their answer in ${place}; send it again later` };
  }

  private tooMany(): Refusal {
    const { many, place } = this.words;
    const reason =
      `${MAX_PENDING_REQUESTS} ${many}, or ${MAX_PENDING_HEADER_BYTES} bytes of their headers, wait for their answer in ${place}, ` +
      'which is the most there may be; send it again later';
    return { status: 429, reason };
  }

  private bodyTaken(): HttpAnswer {
    const { one, module } = this.words;
    const reason =
      `something in the application has parsed the body of this ${one}, and its bytes are gone: let no body parser handle the route ` +
      `of the ${one} before ${module}, or create the application with { rawBody: true }`;
    return { status: 500, body: JSON.stringify({ acknowledgement: Acknowledgement.NACK, reason }) };
  }
}

function isUnread(request: IncomingMessage): boolean {
  return request.readable && !request.readableDidRead;
}
