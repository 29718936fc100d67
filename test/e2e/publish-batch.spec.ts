import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import request from 'supertest';
import { PublishBodyReader } from '../../src/broker/publish-body.reader.js';
import { ErrorCode, MmmqError } from '../../src/core/index.js';
import { TopicQueueService } from '../../src/topic-queue/index.js';
import { brokerApplication } from '../support/broker-application.js';
import { MemoryEngine } from '../support/memory-engine.js';

const MAX_MESSAGE_BYTES = 500;
const MAX_BATCH_BYTES = 4000;
const MAX_MESSAGES = 20;
const PENDING_BYTES = 16_000;
const NDJSON = 'application/x-ndjson';
const JSON_TYPE = 'application/json';

let engine: MemoryEngine;
let app: INestApplication;

async function start(on: MemoryEngine): Promise<void> {
  engine = on;
  ({ app } = await brokerApplication({
    engine,
    broker: {
      message: { maxBytes: MAX_MESSAGE_BYTES },
      batch: { maxBytes: MAX_BATCH_BYTES, maxMessages: MAX_MESSAGES },
      pending: { maxBytes: PENDING_BYTES },
    },
  }));
}

beforeEach(() => start(new MemoryEngine()));
afterEach(async () => {
  app.getHttpServer().closeAllConnections();
  await app.close();
});

function publish(body: string | Buffer, type = NDJSON, headers: Record<string, string> = {}): request.Test {
  return request(app.getHttpServer())
    .post('/messages/batch')
    .set({ 'content-type': type, ...headers })
    .serialize((sent: unknown) => sent as string)
    .send(body);
}

const message = (number: number, topic = 'order.created', id?: string): string =>
  `{"topic":"${topic}","content":${number}${id === undefined ? '' : `,"id":"${id}"`}}`;
const asArray = (messages: readonly string[]): string => `[${messages.join()}]`;
const asLines = (messages: readonly string[]): string => messages.map((line) => `${line}\n`).join('');
const ack = (offset: number, topic = 'order.created') => ({ acknowledgement: 'ACK', topic, offset });

const contents = (topic = 'order.created'): unknown[] =>
  (engine.logs.get(topic)?.payloads ?? []).map((payload) => (JSON.parse(payload.toString()) as { content: unknown }).content);

describe.each([
  ['lines', NDJSON, asLines],
  ['an array', JSON_TYPE, asArray],
])('POST /messages/batch with %s', (_form, type, join) => {
  it('stores all, in their order within each topic, in one pass each, and answers each in its place', async () => {
    const messages = [message(0), message(1, 'news'), message(2), message(3, 'news'), message(4)];
    const response = await publish(join(messages), type).expect(200);
    expect(response.headers['content-type']).toBe('application/json');
    expect(response.body).toEqual([ack(0), ack(0, 'news'), ack(1), ack(1, 'news'), ack(2)]);
    expect(contents()).toEqual([0, 2, 4]);
    expect(contents('news')).toEqual([1, 3]);
    expect(engine.logs.get('order.created')?.passes).toHaveLength(1);
    expect(app.get(PublishBodyReader).pending).toMatchObject({ bytes: 0, count: 0 });
  });

  it('keeps the bytes of each message as they are, with the time and the trace of the request', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await publish(join(['{ "content" : 1.0, "topic":"t" }']), type, { traceparent }).expect(200);
    expect(engine.logs.get('t')?.payloads[0]?.toString()).toMatch(
      new RegExp(`^\\{ "content" : 1\\.0, "topic":"t" ,"traceparent":"${traceparent}","timestamp":\\d+\\}$`),
    );
  });

  it('lets each message stand or fall alone, with the status of the first failure', async () => {
    const tooLarge = `{"topic":"t","content":"${'x'.repeat(MAX_MESSAGE_BYTES)}"}`;
    const messages = [message(0), '{"topic":"t"}', tooLarge, '5', message(1)];
    const response = await publish(join(messages), type).expect(400);
    expect(response.body).toEqual([
      ack(0),
      { status: 400, acknowledgement: 'NACK', field: 'content', reason: 'the member "content" is missing' },
      { status: 413, acknowledgement: 'NACK', reason: expect.stringContaining('message.max-bytes') },
      { status: 400, acknowledgement: 'NACK', reason: expect.stringContaining('JSON object') },
      ack(1),
    ]);
    expect(contents()).toEqual([0, 1]);
  });

  it('tells what was stored from what was not when the disk fails in the middle', async () => {
    const failure = new MmmqError(ErrorCode.DISK_FULL, 'full');
    engine.faults.append = (topic) => (topic === 'order.created' ? { stored: 1, failure } : undefined);
    const response = await publish(join([message(0), message(1, 'news'), message(2)]), type).expect(507);
    expect(response.body).toEqual([
      ack(0),
      ack(0, 'news'),
      { status: 507, acknowledgement: 'NACK', reason: 'the disk of the broker is full; send it again later' },
    ]);
  });

  it('refuses the messages of a topic that cannot be made, and no others', async () => {
    engine.faults.create = (topic) => {
      if (topic === 'news') throw new MmmqError(ErrorCode.IO, 'no');
    };
    const response = await publish(join([message(0, 'news'), message(1), message(2, 'news')]), type).expect(503);
    expect(response.body).toEqual([expect.objectContaining({ status: 503 }), ack(0), expect.objectContaining({ status: 503 })]);
  });

  it('has one message at least, and no more than it may, or stores nothing', async () => {
    await publish(join([]), type).expect(400, { acknowledgement: 'NACK', reason: 'the batch has no message; send one at least' });
    const messages = Array.from({ length: MAX_MESSAGES + 1 }, (_, number) => message(number));
    const response = await publish(join(messages), type).expect(413);
    expect(response.body).toEqual({ acknowledgement: 'NACK', reason: expect.stringContaining('batch.max-messages, which is 20') });
    await publish(join(messages.slice(1)), type).expect(200);
    expect(contents()).toHaveLength(MAX_MESSAGES);
  });
});

describe('a batch of messages with ids', () => {
  const ids = (...numbers: number[]): string => asLines(numbers.map((number) => message(number, 'order.created', `id-${number}`)));

  it('is stored once, however often it is sent, also when it comes twice within itself and after a restart', async () => {
    expect((await publish(ids(0, 1, 0)).expect(200)).body).toEqual([ack(0), ack(1), ack(0)]);
    expect((await publish(ids(1, 2)).expect(200)).body).toEqual([ack(1), ack(2)]);
    await app.close();
    await start(engine.restarted());
    expect((await publish(ids(3, 0, 2, 4)).expect(200)).body).toEqual([ack(3), ack(0), ack(2), ack(4)]);
    expect(contents()).toEqual([0, 1, 2, 3, 4]);
  });

  it('refuses an id that was used for other content, for its message alone', async () => {
    await publish(ids(0)).expect(200);
    const response = await publish(message(7, 'order.created', 'id-0') + '\n' + message(8)).expect(422);
    expect(response.body).toEqual([
      { status: 422, acknowledgement: 'NACK', field: 'id', reason: expect.stringContaining('offset 0') },
      ack(1),
    ]);
  });

  it('keeps its order also where an id has to be looked up first', async () => {
    await publish(ids(0)).expect(200);
    await app.close();
    await start(engine.restarted());
    const mixed = asLines([message(1, 'order.created', 'id-1'), message(2), message(3, 'order.created', 'id-3'), message(4)]);
    expect((await publish(mixed).expect(200)).body).toEqual([ack(1), ack(2), ack(3), ack(4)]);
    expect(contents()).toEqual([0, 1, 2, 3, 4]);
  });

  it('keeps its order also where the first copy of an id can no longer be read', async () => {
    await publish(ids(0)).expect(200);
    engine.logs.get('order.created')?.corrupt.add(0);
    const mixed = asLines([message(0, 'order.created', 'id-0'), message(1)]);
    expect((await publish(mixed).expect(200)).body).toEqual([ack(1), ack(2)]);
    expect(contents()).toEqual([0, 0, 1]);
  });

  it('fails for those messages alone whose ids cannot be looked up', async () => {
    await publish(ids(0)).expect(200);
    await app.close();
    await start(engine.restarted());
    engine.faults.read = () => {
      throw new MmmqError(ErrorCode.IO, 'no');
    };
    const mixed = asLines([message(0, 'order.created', 'id-0'), message(1)]);
    expect((await publish(mixed).expect(503)).body).toEqual([expect.objectContaining({ status: 503 }), ack(1)]);
  });
});

describe('a batch as a whole', () => {
  it('is refused for a header that is for one message', async () => {
    const response = await publish(message(0), NDJSON, { 'idempotency-key': 'x' }).expect(400);
    expect(response.body).toEqual({ acknowledgement: 'NACK', field: 'idempotency-key', reason: expect.stringContaining('"id"') });
  });

  it.each(['text/plain', 'application/json; charset=latin1'])('is refused as %s', async (type) => {
    await publish(message(0), type).expect(415);
  });

  it('is refused where it has more bytes than it may', async () => {
    const [first, rest] = [message(0), '\n'.repeat(MAX_BATCH_BYTES - message(0).length)];
    await publish(`${first}${rest}\n`).expect(413);
    expect((await publish(`${first}${rest}`).expect(200)).body).toEqual([ack(0)]);
  });

  it('is refused, and nothing of it stored, where its messages take more memory than is left', async () => {
    const body = asLines(Array.from({ length: MAX_MESSAGES }, (_, number) => message(number)));
    const { pending } = app.get(PublishBodyReader);
    expect(pending.takeBytes(10_000)).toBe(true);
    await publish(body).expect(429).expect('retry-after', '1');
    expect(contents()).toEqual([]);
    pending.giveBackBytes(10_000);
    await publish(body).expect(200);
    expect(pending).toMatchObject({ bytes: 0, count: 0 });
  });

  it('that is an array and no JSON to its end stores nothing', async () => {
    const response = await publish(`[${message(0)},`, JSON_TYPE).expect(400);
    expect(response.body).toEqual({
      acknowledgement: 'NACK',
      reason: expect.stringMatching(/is not JSON: .*; nothing of the batch is stored/),
    });
    expect(engine.logs.size).toBe(0);
  });

  it('is refused message by message when the broker stops', async () => {
    await app.get(TopicQueueService).onApplicationShutdown();
    const response = await publish(asLines([message(0), message(1)]))
      .expect(503)
      .expect('connection', 'close');
    expect(response.body).toHaveLength(2);
  });

  it('is found under a global prefix, with a slash behind it, in any case', async () => {
    await app.close();
    ({ app } = await brokerApplication({ engine: new MemoryEngine(), configure: (application) => application.setGlobalPrefix('api') }));
    for (const path of ['/api/messages/batch', '/API/Messages/Batch/']) {
      await request(app.getHttpServer())
        .post(path)
        .set('content-type', NDJSON)
        .serialize((sent: unknown) => sent as string)
        .send(message(0))
        .expect(200);
    }
  });
});
