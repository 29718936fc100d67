import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { MessagesController, PublishBodyReader } from '../broker/index.js';
import { answer, type BodyRule, refusalAnswer, type RequestBody } from '../http-route/index.js';
import { brokerSettings } from '../settings/index.js';
import type { TopicQueueService } from '../topic-queue/index.js';

/** A request to publish, in the same process. */
export interface PublishRequest {
  readonly isBatch: boolean;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface PublishedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Publishes through the controller of the broker, without a server in front of it: the answers are those of the broker, byte for byte. */
export class PublishEntrance {
  private readonly controller: MessagesController;

  constructor(topicQueues: TopicQueueService) {
    const settings = brokerSettings({}, 'TestingBroker');
    this.controller = new MessagesController(topicQueues, new BodiesInMemory(settings), settings);
  }

  publish({ isBatch, headers, body }: PublishRequest): Promise<PublishedAnswer> {
    return new Promise((resolve, reject) => {
      const request = { headers, rawHeaders: [], bodyInMemory: body };
      const response = new ResponseInMemory(resolve);
      const route = isBatch ? 'publishBatch' : 'publish';
      this.controller[route](request as unknown as IncomingMessage, response as unknown as ServerResponse).catch(reject);
    });
  }
}

/** The bodies are there already. */
class BodiesInMemory extends PublishBodyReader {
  override bodyOf(request: IncomingMessage, response: ServerResponse, { maxBytes, setting }: BodyRule): Promise<RequestBody | undefined> {
    const { bodyInMemory: bytes } = request as unknown as { readonly bodyInMemory: Buffer };
    if (bytes.length <= maxBytes) return Promise.resolve({ bytes, takeMore: () => true, giveBack: () => undefined });
    answer(response, refusalAnswer({ status: 413, reason: `the body is larger than ${setting}, which is ${maxBytes}` }));
    return Promise.resolve(undefined);
  }
}

/** What an answer is written to. */
class ResponseInMemory {
  headersSent = false;
  readonly writableEnded = false;
  readonly destroyed = false;
  private status = 0;
  private headers: PublishedAnswer['headers'] = {};

  constructor(private readonly resolve: (answered: PublishedAnswer) => void) {}

  writeHead(status: number, headers: OutgoingHttpHeaders): this {
    this.headersSent = true;
    this.status = status;
    this.headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, typeof value === 'number' ? String(value) : (value as string | undefined)]),
    );
    return this;
  }

  end(body: string): void {
    this.resolve({ status: this.status, headers: this.headers, body: Buffer.from(body) });
  }
}
