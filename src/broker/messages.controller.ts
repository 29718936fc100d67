import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, Inject, Logger, Post, Req, Res, VERSION_NEUTRAL } from '@nestjs/common';
import { Acknowledgement, ErrorCode, MmmqError } from '../core/index.js';
import {
  answer,
  BATCH_PATH,
  type HttpAnswer,
  mediaTypeOf,
  NDJSON_TYPE,
  type PlatformRequest,
  type PlatformResponse,
  refusalAnswer,
  type RequestBody,
  requestOf,
  responseOf,
} from '../http-route/index.js';
import { type Message, type PublishHeaders, PublishRefusedError, readPublish, splitBatch } from '../message/index.js';
import { BROKER_SETTINGS, type BrokerSettings } from '../settings/index.js';
import { TopicQueueService, TopicQueueServiceState } from '../topic-queue/index.js';
import { PublishBodyReader } from './publish-body.reader.js';
import { publishHeadersOf } from './publish-headers.js';
import { PUBLISH_PATH } from './publish-route.claim.js';

/** What a producer is told of a failure on the broker's side. The log and `GET /health/ready` say more, with paths that are no producer's affair. */
const REASONS: Partial<Record<ErrorCode, string>> = {
  [ErrorCode.DISK_FULL]: 'the disk of the broker is full; send it again later',
  [ErrorCode.APPEND_FAILED]: 'the disk of the broker failed, and the message may or may not be stored; send it again, with an id',
  [ErrorCode.TOPIC_REFUSING]: 'the topic takes no messages until its files are re-opened after an error of the disk; send it again later',
  [ErrorCode.IO]: 'the disk of the broker failed; send it again, with an id',
  [ErrorCode.LOCKED]: 'another process may have taken over the data directory of the broker; its log says what to do',
  [ErrorCode.CLOSED]: 'the broker is starting or stopping; send it again later',
};

/** What a message of a batch takes in memory beside its bytes, while it waits: it counts as if it were that much larger. */
const BATCH_MESSAGE_OVERHEAD_BYTES = 512;

/**
 * `POST /messages`: stores one message and answers ACK when it is durable.
 *
 *     {"topic":"order.created","content":{"id":1}}
 *     200 {"acknowledgement":"ACK","topic":"order.created","offset":41}
 *
 * `POST /messages/batch`: many at once, one JSON object per line (`application/x-ndjson`) or a JSON array of them. Each stands or falls alone, and
 * has its answer in the array that is the answer, in its order; one that failed has its `status` in it. The status of the whole is 200 when
 * all are stored, otherwise that of the first failure.
 *
 *     {"topic":"order.created","content":{"id":1}}
 *     {"topic":"order.paid"}
 *     400 [{"acknowledgement":"ACK","topic":"order.created","offset":41},{"status":400,"acknowledgement":"NACK","field":"content","reason":"…"}]
 *
 * The body is read as bytes, without a parser or a DTO, and the answer is written here in one go: both would change what has to stay as it
 * is. Guards apply as anywhere; interceptors and filters see no answer to change.
 */
@Controller({ path: PUBLISH_PATH, version: VERSION_NEUTRAL })
export class MessagesController {
  private readonly logger = new Logger(MessagesController.name);

  constructor(
    @Inject(TopicQueueService) private readonly topicQueues: TopicQueueService,
    @Inject(PublishBodyReader) private readonly bodies: PublishBodyReader,
    @Inject(BROKER_SETTINGS) private readonly settings: BrokerSettings,
  ) {}

  @Post()
  async publish(@Req() platformRequest: PlatformRequest, @Res() platformResponse: PlatformResponse): Promise<void> {
    const [request, response] = [requestOf(platformRequest), responseOf(platformResponse)];
    const body = await this.bodies.bodyOf(request, response, this.bodies.single);
    if (body === undefined) return;
    try {
      this.answer(response, stored(await this.topicQueues.append(readPublish(body.bytes, publishHeadersOf(request)))));
    } catch (error) {
      this.answer(response, this.failureAnswer(error));
    } finally {
      body.giveBack();
    }
  }

  @Post(BATCH_PATH)
  async publishBatch(@Req() platformRequest: PlatformRequest, @Res() platformResponse: PlatformResponse): Promise<void> {
    const [request, response] = [requestOf(platformRequest), responseOf(platformResponse)];
    const body = await this.bodies.bodyOf(request, response, this.bodies.batch);
    if (body === undefined) return;
    try {
      this.answer(response, batchAnswer(await this.storeBatch(request, body)));
    } catch (error) {
      this.answer(response, this.failureAnswer(error));
    } finally {
      body.giveBack();
    }
  }

  /** @throws {PublishRefusedError} when the batch as a whole is refused */
  private async storeBatch(request: IncomingMessage, body: RequestBody): Promise<readonly HttpAnswer[]> {
    const { idempotencyKey, ...headers } = publishHeadersOf(request);
    if (idempotencyKey !== undefined) {
      throw new PublishRefusedError(400, 'idempotency-key', 'the header is for one message; in a batch each has its own member "id"');
    }
    const bodies = splitBatch(body.bytes, mediaTypeOf(request) === NDJSON_TYPE ? 'ndjson' : 'array', this.settings.batch.maxMessages);
    if (!body.takeMore(bodies.length * BATCH_MESSAGE_OVERHEAD_BYTES)) {
      throw new PublishRefusedError(429, undefined, this.bodies.tooManyBytes().reason);
    }

    const answers: HttpAnswer[] = [];
    const messages: Message[] = [];
    const places: number[] = [];
    for (const [place, bytes] of bodies.entries()) {
      try {
        messages.push(this.readOfBatch(bytes, headers));
        places.push(place);
      } catch (error) {
        answers[place] = this.failureAnswer(error);
      }
    }
    for (const [index, outcome] of (await this.topicQueues.appendAll(messages)).entries()) {
      answers[places[index] as number] = outcome.status === 'fulfilled' ? stored(outcome.value) : this.failureAnswer(outcome.reason);
    }
    return answers;
  }

  private readOfBatch(bytes: Buffer, headers: PublishHeaders): Message {
    const { maxBytes, setting } = this.bodies.single;
    if (bytes.length > maxBytes) {
      throw new PublishRefusedError(413, undefined, `the message is larger than ${setting}, which is ${maxBytes}`);
    }
    return readPublish(bytes, headers);
  }

  private answer(response: ServerResponse, publishAnswer: HttpAnswer): void {
    // While the application goes down its clients should look for another connection.
    const isStopping = this.topicQueues.state !== TopicQueueServiceState.SERVING;
    answer(response, isStopping ? { ...publishAnswer, headers: { ...publishAnswer.headers, connection: 'close' } } : publishAnswer);
  }

  private failureAnswer(error: unknown): HttpAnswer {
    if (error instanceof PublishRefusedError) return refusalAnswer(error);
    const reason = error instanceof MmmqError ? REASONS[error.code] : undefined;
    if (error instanceof MmmqError && reason !== undefined) return notStored(error.code === ErrorCode.DISK_FULL ? 507 : 503, reason);
    this.logger.error('a publish failed unexpectedly', error instanceof Error ? error.stack : String(error));
    return notStored(503, 'the broker failed unexpectedly; its log says how');
  }
}

function stored({ topic, offset }: { readonly topic: string; readonly offset: number }): HttpAnswer {
  return { status: 200, body: `{"acknowledgement":"${Acknowledgement.ACK}","topic":"${topic}","offset":${offset}}` };
}

function batchAnswer(answers: readonly HttpAnswer[]): HttpAnswer {
  const { status, headers = {} } = answers.find((candidate) => candidate.status !== 200) ?? { status: 200 };
  const items = answers.map((item) => (item.status === 200 ? item.body : `{"status":${item.status},${item.body.slice(1)}`));
  return { status, headers, body: `[${items.join()}]` };
}

function notStored(status: 503 | 507, reason: string): HttpAnswer {
  return { status, body: JSON.stringify({ acknowledgement: Acknowledgement.NACK, reason }) };
}
