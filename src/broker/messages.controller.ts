import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, Inject, Logger, Post, Req, Res, VERSION_NEUTRAL } from '@nestjs/common';
import { Acknowledgement, ErrorCode, MmmqError } from '../core/index.js';
import { PublishRefusedError, readPublish } from '../message/index.js';
import { TopicQueueService, TopicQueueServiceState } from '../topic-queue/index.js';
import { answer, type PublishAnswer, refusalAnswer } from './publish-answer.js';
import { PublishBodyReader } from './publish-body.reader.js';
import { publishHeadersOf } from './publish-headers.js';
import { PUBLISH_PATH } from './publish-route.claim.js';

/** What a producer is told of a failure on the broker's side. The log and `GET /health/ready` say more, with paths that are no producer's affair. */
const REASONS: Partial<Record<ErrorCode, string>> = {
  [ErrorCode.DISK_FULL]: 'the disk of the broker is full; send it again later',
  [ErrorCode.APPEND_FAILED]: 'the disk of the broker failed, and the message may or may not be stored; send it again, with an id',
  [ErrorCode.TOPIC_REFUSING]: 'the topic takes no messages until its files are re-opened after an error of the disk; send it again later',
  [ErrorCode.IO]: 'the disk of the broker failed; send it again, with an id',
  [ErrorCode.CLOSED]: 'the broker is starting or stopping; send it again later',
};

/**
 * `POST /messages`: stores one message and answers ACK when it is durable.
 *
 *     {"topic":"order.created","content":{"id":1}}
 *     200 {"acknowledgement":"ACK","topic":"order.created","offset":41}
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
  ) {}

  @Post()
  async publish(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    const body = await this.bodies.bodyOf(request, response);
    if (body === undefined) return;
    try {
      const { topic, offset } = await this.topicQueues.append(readPublish(body.bytes, publishHeadersOf(request)));
      const acknowledgement = `{"acknowledgement":"${Acknowledgement.ACK}","topic":"${topic}","offset":${offset}}`;
      this.answer(response, { status: 200, body: acknowledgement });
    } catch (error) {
      this.answer(response, this.failureAnswer(error));
    } finally {
      body.giveBack();
    }
  }

  private answer(response: ServerResponse, publishAnswer: PublishAnswer): void {
    // While the application goes down its clients should look for another connection.
    const isStopping = this.topicQueues.state !== TopicQueueServiceState.SERVING;
    answer(response, isStopping ? { ...publishAnswer, headers: { ...publishAnswer.headers, connection: 'close' } } : publishAnswer);
  }

  private failureAnswer(error: unknown): PublishAnswer {
    if (error instanceof PublishRefusedError) return refusalAnswer(error);
    const reason = error instanceof MmmqError ? REASONS[error.code] : undefined;
    if (error instanceof MmmqError && reason !== undefined) return notStored(error.code === ErrorCode.DISK_FULL ? 507 : 503, reason);
    this.logger.error('a publish failed unexpectedly', error instanceof Error ? error.stack : String(error));
    return notStored(503, 'the broker failed unexpectedly; its log says how');
  }
}

function notStored(status: 503 | 507, reason: string): PublishAnswer {
  return { status, body: JSON.stringify({ acknowledgement: Acknowledgement.NACK, reason }) };
}
