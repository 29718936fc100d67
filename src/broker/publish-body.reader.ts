import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Inject, Injectable } from '@nestjs/common';
import { Acknowledgement } from '../core/index.js';
import { PublishRefusedError } from '../message/index.js';
import { BROKER_SETTINGS, type BrokerSettings } from '../settings/index.js';
import { BodyBuffer } from './body-buffer.js';
import { MAX_PENDING_HEADER_BYTES, MAX_PENDING_PUBLISHES, PendingPublishes } from './pending-publishes.js';
import { answer, answerUnread, refusalAnswer } from './publish-answer.js';
import { mediaTypeRefusalOf } from './publish-headers.js';

/** The bytes of a publish. Whoever has them gives them back, once, when the answer is written: until then the publish counts as pending. */
export interface PublishBody {
  readonly bytes: Buffer;
  /** Counts what the publish takes beside its bytes, until they are given back. @returns false, and takes nothing, when that is too much */
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
 * Reads the bodies of publishes, as bytes and within the limits. What it refuses it answers itself, in this order: 415 for what is not of the
 * route's type in UTF-8, 413 for what is larger than it takes (by its Content-Length before anything is read), 429 for what passes
 * `pending.max-bytes`, {@link MAX_PENDING_PUBLISHES} or {@link MAX_PENDING_HEADER_BYTES}. Of a client that goes away in mid-body nothing is left.
 */
@Injectable()
export class PublishBodyReader {
  readonly pending: PendingPublishes;
  /** `POST /messages` */
  readonly single: BodyRule;
  /** `POST /messages/batch` */
  readonly batch: BodyRule;
  /** The claimed bodies that nobody came for yet, by their connection. */
  private readonly claimed = new WeakMap<Socket, Map<IncomingMessage, PublishBody>>();

  constructor(@Inject(BROKER_SETTINGS) settings: BrokerSettings) {
    this.single = { mediaTypes: [JSON_TYPE], maxBytes: settings.message.maxBytes, setting: 'message.max-bytes' };
    this.batch = { mediaTypes: [NDJSON_TYPE, JSON_TYPE], maxBytes: settings.batch.maxBytes, setting: 'batch.max-bytes' };
    this.pending = new PendingPublishes(settings.pending.maxBytes);
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
  private claimedOn(socket: Socket): Map<IncomingMessage, PublishBody> {
    const before = this.claimed.get(socket);
    if (before !== undefined) return before;
    const bodies = new Map<IncomingMessage, PublishBody>();
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
  ): Promise<PublishBody | undefined> {
    const claimed = this.take(request);
    if (claimed !== undefined) return Promise.resolve(claimed);
    if (isUnread(request)) return new Promise((resolve) => this.read(request, response, rule, resolve));
    if (Buffer.isBuffer(request.rawBody)) return Promise.resolve(this.keptBody(request, response, rule, request.rawBody));
    answer(response, BODY_TAKEN);
    return Promise.resolve(undefined);
  }

  private take(request: IncomingMessage): PublishBody | undefined {
    const bodies = this.claimed.get(request.socket);
    const body = bodies?.get(request);
    bodies?.delete(request);
    return body;
  }

  /** @param onEnd is called once: with the body, or without one when the request was answered or the client is gone */
  private read(request: IncomingMessage, response: ServerResponse, rule: BodyRule, onEnd: (body?: PublishBody) => void): void {
    const announcedBytes = Number(request.headers['content-length'] ?? 0);
    const received = new BodyBuffer(announcedBytes > 0 ? announcedBytes : rule.maxBytes);
    const finish = (body?: PublishBody): void => {
      request.off('data', onData).off('end', onComplete).off('close', onGone);
      if (body === undefined) this.pending.giveBackBytes(received.length);
      onEnd(body);
    };
    const refuse = (error: PublishRefusedError): void => {
      finish();
      answerUnread(request, response, refusalAnswer(error));
    };
    const onData = (chunk: Buffer): void => {
      const refused = this.refusalOf(rule, received.length + chunk.length, chunk.length);
      if (refused === undefined) received.append(chunk);
      else refuse(refused);
    };
    const onComplete = (): void => {
      const body = this.begin(request, received.bytes);
      finish(body);
      if (body === undefined) answer(response, refusalAnswer(tooManyPublishes()));
    };
    const onGone = (): void => finish();

    const refused = mediaTypeRefusalOf(request, rule.mediaTypes) ?? this.refusalOf(rule, announcedBytes, 0);
    if (refused === undefined) request.on('data', onData).on('end', onComplete).on('close', onGone);
    else refuse(refused);
  }

  /** The bytes that another parser read and kept. */
  private keptBody(request: IncomingMessage, response: ServerResponse, rule: BodyRule, bytes: Buffer): PublishBody | undefined {
    const refused = mediaTypeRefusalOf(request, rule.mediaTypes) ?? this.refusalOf(rule, bytes.length, bytes.length);
    const body = refused === undefined ? this.begin(request, bytes) : undefined;
    if (body !== undefined) return body;
    if (refused === undefined) this.pending.giveBackBytes(bytes.length);
    answer(response, refusalAnswer(refused ?? tooManyPublishes()));
    return undefined;
  }

  /** Why a body of this length, with so many bytes more to keep, is refused. When it is not, the bytes are taken. */
  private refusalOf(rule: BodyRule, length: number, moreBytes: number): PublishRefusedError | undefined {
    if (length > rule.maxBytes) {
      return new PublishRefusedError(413, undefined, `the body is larger than ${rule.setting}, which is ${rule.maxBytes}`);
    }
    return this.pending.takeBytes(moreBytes) ? undefined : tooManyBytes();
  }

  /** The publish, there whole and its bytes taken; undefined when there are too many. */
  private begin({ rawHeaders }: IncomingMessage, bytes: Buffer): PublishBody | undefined {
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
}

export function tooManyBytes(): PublishRefusedError {
  return new PublishRefusedError(429, undefined, 'too many bytes of publishes wait for their answer in the broker; send it again later');
}

function tooManyPublishes(): PublishRefusedError {
  const reason =
    `${MAX_PENDING_PUBLISHES} publishes, or ${MAX_PENDING_HEADER_BYTES} bytes of their headers, wait for their answer in the broker, ` +
    'which is the most there may be; send it again later';
  return new PublishRefusedError(429, undefined, reason);
}

function isUnread(request: IncomingMessage): boolean {
  return request.readable && !request.readableDidRead;
}
