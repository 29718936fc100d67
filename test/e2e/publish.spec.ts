import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import request from 'supertest';
import { ErrorCode, MmmqError } from '../../src/core/index.js';
import { PublishBodyReader } from '../../src/broker/publish-body.reader.js';
import { MAX_PENDING_HEADER_BYTES, MAX_PENDING_REQUESTS } from '../../src/http-route/index.js';
import { TopicQueueService } from '../../src/topic-queue/index.js';
import { brokerApplication } from '../support/broker-application.js';
import { heapAfterCollection } from '../support/heap.js';
import { Gate } from '../support/gate.js';
import { MemoryEngine } from '../support/memory-engine.js';
import { RawHttp } from '../support/raw-http.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

const MAX_BYTES = 4096;
const PENDING_MAX_BYTES = 10_000;

const messageJson = (content = '"x"', topic = 'order.created'): string => `{"topic":"${topic}","content":${content}}`;
/** A message of exactly so many bytes. */
const messageOfBytes = (bytes: number): string => messageJson(`"${'x'.repeat(bytes - messageJson('""').length)}"`);

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const head = (headers: string): string => `POST /messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${headers}\r\n\r\n`;
const chunk = (bytes: string): string => `${bytes.length.toString(16)}\r\n${bytes}\r\n`;
const LAST_CHUNK = '0\r\n\r\n';
const send = (http: RawHttp, body: string, sent = body.length): void =>
  http.send(
    `POST /messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, sent)}`,
  );

/** All but `setTimeout`: that is where the patience with a client is measured. */
const REAL_TIMERS = [
  'Date',
  'hrtime',
  'nextTick',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'clearImmediate',
  'setInterval',
  'clearInterval',
] as const;

let engine: MemoryEngine;
let app: INestApplication;
let port: number;
let logged: string[];

beforeEach(async () => {
  engine = new MemoryEngine();
  logged = [];
  const log = (...words: unknown[]): void => void logged.push(words.join(' '));
  ({ app, port } = await brokerApplication({
    engine,
    logger: { log, error: log, warn: log },
    broker: {
      message: { maxBytes: MAX_BYTES },
      batch: { maxBytes: MAX_BYTES },
      pending: { maxBytes: PENDING_MAX_BYTES },
      segment: { maxBytes: PENDING_MAX_BYTES },
    },
  }));
});

afterEach(async () => {
  app.getHttpServer().closeAllConnections();
  await app.close();
});

function publish(body: string | Buffer, headers: Record<string, string> = {}): request.Test {
  return request(app.getHttpServer())
    .post('/messages')
    .set({ 'content-type': 'application/json', ...headers })
    .serialize((sent: unknown) => sent as string)
    .send(body);
}

const stored = (topic = 'order.created'): readonly string[] =>
  (engine.logs.get(topic)?.payloads ?? []).map((payload) => payload.toString());
const storedCount = (): number => [...engine.logs.values()].reduce((count, log) => count + log.count, 0);
const pendingBytes = (): number => app.get(PublishBodyReader).pending.bytes;
const pendingCount = (): number => app.get(PublishBodyReader).pending.count;

describe('POST /messages', () => {
  it('answers ACK with topic and offset once the message is stored', async () => {
    const first = await publish(messageJson());
    const second = await publish(messageJson());

    expect([first.status, first.text]).toEqual([200, '{"acknowledgement":"ACK","topic":"order.created","offset":0}']);
    expect(second.text).toBe('{"acknowledgement":"ACK","topic":"order.created","offset":1}');
    expect(first.headers['content-type']).toBe('application/json');
    expect(first.headers['etag']).toBeUndefined();
  });

  it('stores the bytes of the producer with the time stamp behind them', async () => {
    const body = ' {"content" : {"a":1.0,"a":1e400,"b":"\\ud800", "c":12345678901234567890} ,\n"topic":"order.created"} ';
    await publish(body).expect(200);

    expect(stored()[0]).toMatch(
      /^\{"content" : \{"a":1\.0,"a":1e400,"b":"\\ud800", "c":12345678901234567890\} ,\n"topic":"order\.created","timestamp":\d{13}\}$/,
    );
  });

  it('takes idempotency key and trace context from the headers', async () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const headers = { 'idempotency-key': 'order-1', traceparent: trace, tracestate: 'a=1' };
    await publish(messageJson(), headers).expect(200);
    const again = await publish(messageJson(), headers);
    const other = await publish(messageJson('"y"'), headers);

    expect(again.text).toBe('{"acknowledgement":"ACK","topic":"order.created","offset":0}');
    expect(other.status).toBe(422);
    expect(other.body).toEqual({ acknowledgement: 'NACK', field: 'id', reason: expect.any(String) });
    expect(stored()).toHaveLength(1);
    expect(stored()[0]).toContain(`,"id":"order-1","traceparent":"${trace}","tracestate":"a=1","timestamp":`);
  });

  it('refuses an idempotency key that is there twice', async () => {
    const http = await RawHttp.to(port);
    const body = messageJson();
    http.send(
      `POST /messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nidempotency-key: a\r\nIdempotency-Key: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );

    expect(await http.answer()).toMatchObject({ status: 400, body: expect.stringContaining('"field":"id"') });
    http.socket.destroy();
  });

  it('refuses a topic that differs from another only in case', async () => {
    await publish(messageJson()).expect(200);

    const refused = await publish(messageJson('1', 'Order.Created'));
    expect([refused.status, refused.body]).toEqual([409, { acknowledgement: 'NACK', field: 'topic', reason: expect.any(String) }]);
  });

  it.each([
    ['a full disk', ErrorCode.DISK_FULL, 507, /^the disk of the broker is full; send it again later$/],
    ['a failed sync', ErrorCode.APPEND_FAILED, 503, /may or may not be stored; send it again, with an id$/],
    ['a topic that refuses appends', ErrorCode.TOPIC_REFUSING, 503, /takes no messages until .*; send it again later$/],
  ] as const)('answers %s with a NACK that says what to do and names no file', async (_, code, status, reason) => {
    engine.faults.append = () => ({ stored: 0, failure: new MmmqError(code, 'sync failed on /srv/data/x.mmm: EIO') });

    const answer = await publish(messageJson());
    expect([answer.status, answer.body]).toEqual([status, { acknowledgement: 'NACK', reason: expect.stringMatching(reason) }]);
  });

  it('answers a bug with a NACK that says nothing of it, and logs it', async () => {
    engine.faults.create = () => {
      throw new TypeError('undefined is not a function');
    };

    const answer = await publish(messageJson('"secret content"'));
    expect([answer.status, answer.text]).toEqual([
      503,
      '{"acknowledgement":"NACK","reason":"the broker failed unexpectedly; its log says how"}',
    ]);
    expect(logged.join('\n')).toContain('TypeError: undefined is not a function');
    expect(logged.join('\n')).not.toContain('secret');
  });

  it('answers 503 when the broker is closed', async () => {
    await app.get(TopicQueueService).onApplicationShutdown();

    const answer = await publish(messageJson());
    expect([answer.status, answer.body]).toEqual([503, { acknowledgement: 'NACK', reason: expect.any(String) }]);
  });

  it('sends its clients to other connections while the application stops', async () => {
    const http = await RawHttp.to(port);
    const publishRaw = (): void =>
      http.send(`POST /messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 37\r\n\r\n${messageJson('1')}`);
    publishRaw();
    expect((await http.answer())?.headers.get('connection')).toBe('keep-alive');
    app.get(TopicQueueService).onModuleDestroy();

    publishRaw();
    const answer = await http.answer();
    expect([answer?.status, answer?.headers.get('connection')]).toEqual([200, 'close']);
    await http.closed();
  });
});

describe('A publish that is refused for what it is', () => {
  it.each<[string, string | Buffer, string | undefined]>([
    ['that is empty', '', undefined],
    ['that is cut off', '{"topic":"a","content":1', undefined],
    ['with more than one value', `${messageJson()}{}`, undefined],
    ['that is no object', '[]', undefined],
    ['with a byte order mark', `\ufeff${messageJson()}`, undefined],
    [
      'with invalid UTF-8',
      Buffer.concat([Buffer.from('{"topic":"a","content":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]),
      undefined,
    ],
    ['without a topic', '{"content":1}', 'topic'],
    ['whose topic is a number', '{"topic":1,"content":1}', 'topic'],
    ['whose topic leads out of the directory', messageJson('1', '../../etc/passwd'), 'topic'],
    ['whose topic is a path', messageJson('1', 'order/created'), 'topic'],
    ['whose topic is the parent directory', messageJson('1', '..'), 'topic'],
    ['whose topic hides a zero byte', messageJson('1', 'order\\u0000'), 'topic'],
    ['to a dead letter topic', messageJson('1', 'dlq.order-dispatcher'), 'topic'],
    ['without content', '{"topic":"a"}', 'content'],
    ['with null as content', messageJson('null'), 'content'],
    ['with 513 levels of content', messageJson(deep(513)), 'content'],
    ['with an unknown member', '{"topic":"a","content":1,"colour":"red"}', 'colour'],
    ['with __proto__ as a member', '{"topic":"a","content":1,"__proto__":{}}', '__proto__'],
    ['with a member twice', '{"topic":"a","content":1,"content":1}', 'content'],
    ['with an id that breaks the rule', '{"topic":"a","content":1,"id":"a b"}', 'id'],
    ['with a key that breaks the rule', '{"topic":"a","content":1,"key":""}', 'key'],
    ['with headers that break the rule', '{"topic":"a","content":1,"headers":{"A":"b"}}', 'headers'],
  ])('is answered 400 %s', async (_, body, field) => {
    const answer = await publish(body);

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ acknowledgement: 'NACK', ...(field === undefined ? {} : { field }), reason: expect.any(String) });
    expect(storedCount()).toBe(0);
    await publish(messageJson()).expect(200);
  });

  it('lets __proto__ in the content be what it is: content', async () => {
    await publish(messageJson('{"__proto__":{"polluted":true}}')).expect(200);

    expect(stored()[0]).toContain('{"__proto__":{"polluted":true}}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it.each([
    ['no type', ''],
    ['text', 'text/plain'],
    ['a form', 'application/x-www-form-urlencoded'],
    ['lines of JSON', 'application/x-ndjson'],
    ['a relative of JSON', 'application/vnd.api+json'],
    ['two types in one', 'application/json, application/json'],
    ['a type that is cut off', 'application/json; charset="utf-8'],
    ['a parameter without a value', 'application/json; charset'],
    ['a charset twice', 'application/json; charset=utf-8; charset=latin1'],
    ['a charset twice in other letters', 'application/json;charset=utf-8;Charset="UTF-8"'],
    ['a parameter twice', 'application/json; a=";b=1"; b=2; b=3'],
    ['another charset', 'application/json; charset=iso-8859-1'],
    ['a relative of the charset', 'application/json; charset=utf-16'],
    ['the charset of a fake', 'application/json; charset=__proto__'],
    ['a header made to be slow', `application/json${';'.padEnd(100, ' ').repeat(100)}!`],
  ])('is answered 415 with %s as its type', async (_, type) => {
    const http = await RawHttp.to(port);
    const body = messageJson();
    http.send(
      `POST /messages HTTP/1.1\r\nhost: x\r\n${type === '' ? '' : `content-type: ${type}\r\n`}content-length: ${body.length}\r\n\r\n${body}`,
    );

    const answer = await http.answer();
    expect(answer?.status).toBe(415);
    expect(JSON.parse(answer?.body ?? '')).toEqual({ acknowledgement: 'NACK', field: 'content-type', reason: expect.any(String) });
    await http.closed();
    expect(storedCount()).toBe(0);
  });

  it.each([
    'application/json;charset=utf-8',
    'Application/JSON ; Charset="UTF-8"',
    'application/json;',
    'application/json; profile="a\\"b"',
    'application/json; profile="a;charset=latin1"; charset=utf-8',
  ])('is none with the type %s', async (type) => {
    await publish(messageJson(), { 'content-type': type }).expect(200);
  });

  it('is answered 415 with two types', async () => {
    const http = await RawHttp.to(port);
    const body = messageJson();
    http.send(
      `POST /messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );

    expect(await http.answer()).toMatchObject({ status: 415 });
    await http.closed();
  });

  it.each(['gzip', 'identity, gzip', 'br', 'x'])('is answered 415 with the content encoding %s', async (coding) => {
    const answer = await publish(messageJson(), { 'content-encoding': coding });

    expect([answer.status, answer.body]).toEqual([415, { acknowledgement: 'NACK', field: 'content-encoding', reason: expect.any(String) }]);
    await publish(messageJson(), { 'content-encoding': 'Identity' }).expect(200);
  });

  it.each(['gzip, chunked', 'deflate, gzip, chunked'])('is answered 415 with the transfer encoding %s', async (coding) => {
    const http = await RawHttp.to(port);
    http.send(head(`transfer-encoding: ${coding}`) + chunk(messageJson()) + LAST_CHUNK);

    const answer = await http.answer();
    expect(answer?.status).toBe(415);
    expect(JSON.parse(answer?.body ?? '')).toEqual({ acknowledgement: 'NACK', field: 'transfer-encoding', reason: expect.any(String) });
    await http.closed();
    expect(storedCount()).toBe(0);
  });

  it('is none with the transfer encoding Chunked', async () => {
    const http = await RawHttp.to(port);
    http.send(head('transfer-encoding: Chunked') + chunk(messageJson()) + LAST_CHUNK);

    expect(await http.answer()).toMatchObject({ status: 200 });
    http.socket.destroy();
  });

  it('is answered 415 before 413, and 413 before 400', async () => {
    const tooLarge = 'x'.repeat(MAX_BYTES + 1);

    await publish(tooLarge, { 'content-type': 'text/plain' }).expect(415);
    await publish(tooLarge).expect(413);
  });
});

describe('A publish that is too large', () => {
  it('is one that has a byte more than the limit', async () => {
    await publish(messageOfBytes(MAX_BYTES)).expect(200);

    const answer = await publish(messageOfBytes(MAX_BYTES + 1));
    expect([answer.status, answer.body]).toEqual([413, { acknowledgement: 'NACK', reason: expect.stringContaining(String(MAX_BYTES)) }]);
    expect(answer.headers['connection']).toBe('close');
    expect(storedCount()).toBe(1);
    expect(pendingBytes()).toBe(0);
  });

  it('is answered by its Content-Length before it is sent', async () => {
    const http = await RawHttp.to(port);
    http.send(head(`content-length: ${MAX_BYTES + 1}`));

    expect(await http.answer()).toMatchObject({ status: 413 });
    http.socket.destroy();
  });

  it('is answered when it is sent in chunks, at the first byte too many', async () => {
    const http = await RawHttp.to(port);
    http.send(head('transfer-encoding: chunked') + chunk('x'.repeat(MAX_BYTES)) + chunk('x'));

    expect(await http.answer()).toMatchObject({ status: 413 });
    expect(pendingBytes()).toBe(0);
    http.socket.destroy();
  });

  it('leaves the answer readable to a client that sends everything first', async () => {
    const bytes = 8 * 1024 * 1024;
    const http = await RawHttp.to(port);
    http.socket.pause();
    http.send(head(`content-length: ${bytes}`));
    for (let sent = 0; sent < bytes; sent += 64 * 1024) {
      if (!http.socket.write('x'.repeat(64 * 1024))) await new Promise<void>((resolve) => http.socket.once('drain', () => resolve()));
    }
    http.socket.resume();

    expect(await http.answer()).toMatchObject({ status: 413 });
    await http.closed();
  });

  it('is cut off when it does not end', async () => {
    const http = await RawHttp.to(port);
    http.send(head('transfer-encoding: chunked'));
    const piece = chunk('x'.repeat(64 * 1024));
    const flood = (): void => {
      while (!http.socket.destroyed && http.socket.write(piece));
    };
    http.socket.on('drain', flood);
    flood();

    await http.closed();
    expect(http.socket.bytesWritten).toBeLessThan(64 * 1024 * 1024);
    expect(pendingBytes()).toBe(0);
  });

  it('is cut off when it neither goes on nor ends', async () => {
    jest.useFakeTimers({ doNotFake: [...REAL_TIMERS] });
    try {
      const http = await RawHttp.to(port);
      http.send(head(`content-length: ${MAX_BYTES + 1}`));
      expect(await http.answer()).toMatchObject({ status: 413 });
      expect(http.socket.closed).toBe(false);
      jest.advanceTimersByTime(5000);

      await http.closed();
    } finally {
      jest.useRealTimers();
    }
  });

  it('is a million nested arrays', async () => {
    const levels = 1_000_000;
    await app.close();
    ({ app, port } = await brokerApplication({ engine: (engine = new MemoryEngine()), broker: { message: { maxBytes: 4 * levels } } }));

    const answer = await publish(messageJson('['.repeat(levels) + ']'.repeat(levels)));
    expect([answer.status, answer.body]).toEqual([400, { acknowledgement: 'NACK', field: 'content', reason: expect.any(String) }]);
    expect(storedCount()).toBe(0);
  });
});

describe('The bytes of publishes without an answer', () => {
  it('are bounded: one that passes the bound is answered 429, and is welcome when others have their answer', async () => {
    const gate = new Gate();
    engine.faults.append = () => gate.opened;
    const body = messageOfBytes(4000);
    const waiting = [await RawHttp.to(port), await RawHttp.to(port)];
    for (const http of waiting) send(http, body);
    await until(() => pendingBytes() === 8000);

    const answer = await publish(body);
    expect([answer.status, answer.body]).toEqual([429, { acknowledgement: 'NACK', reason: expect.any(String) }]);
    expect(answer.headers['retry-after']).toBe('1');
    gate.open();
    for (const http of waiting) {
      expect(await http.answer()).toMatchObject({ status: 200 });
      http.socket.destroy();
    }
    await until(() => pendingBytes() === 0);
    await publish(body).expect(200);
  });

  it('are given back when a client goes away in mid-body, and nothing of it is stored', async () => {
    // What has come is a message on its own, so a reader that took the end of the connection for the end of the body would store it.
    const body = messageJson();
    const http = await RawHttp.to(port);
    http.send(head(`content-length: ${body.length + 1}`) + body);
    await until(() => pendingBytes() === body.length);
    http.socket.destroy();

    await until(() => pendingBytes() === 0);
    expect(storedCount()).toBe(0);
    await publish(messageJson()).expect(200);
  });

  it('count until the append is over when a client goes away while it waits for its answer', async () => {
    const gate = new Gate();
    engine.faults.append = () => gate.opened;
    const http = await RawHttp.to(port);
    send(http, messageOfBytes(4000));
    await until(() => pendingBytes() === 4000 && engine.logs.get('order.created')?.passes.length === 1);
    http.socket.destroy();
    await http.closed();
    expect(pendingBytes()).toBe(4000);
    gate.open();

    await until(() => pendingBytes() === 0);
    expect(storedCount()).toBe(1);
  });
});

describe('A body in chunks of one byte', () => {
  const bytewise = (text: string): string => [...text].map(chunk).join('');

  it('is read as it is', async () => {
    const body = messageOfBytes(MAX_BYTES);
    const http = await RawHttp.to(port);
    http.send(head('transfer-encoding: chunked') + bytewise(body) + LAST_CHUNK);

    expect(await http.answer()).toMatchObject({ status: 200 });
    expect(stored()[0]?.slice(0, MAX_BYTES - 1)).toBe(body.slice(0, -1));
    expect(pendingBytes()).toBe(0);
    http.socket.destroy();
  });

  it('takes no more memory than a few times its bytes', async () => {
    const bodyBytes = 100_000;
    await app.close();
    ({ app, port } = await brokerApplication({ engine: (engine = new MemoryEngine()), broker: { message: { maxBytes: bodyBytes } } }));
    const before = heapAfterCollection();
    const clients = [await RawHttp.to(port), await RawHttp.to(port)];
    for (const http of clients) http.send(head('transfer-encoding: chunked') + bytewise('x'.repeat(bodyBytes)));
    await until(() => pendingBytes() === clients.length * bodyBytes);

    // An object for each chunk would take twenty million.
    expect(heapAfterCollection() - before).toBeLessThan(5_000_000);
    for (const http of clients) http.socket.destroy();
    await until(() => pendingBytes() === 0);
  });
});

describe('The number of publishes without an answer', () => {
  it('is bounded: one more is answered 429 and says so, on a connection that stays, and is welcome when others have their answer', async () => {
    await app.close();
    ({ app, port } = await brokerApplication({ engine: (engine = new MemoryEngine()) }));
    const gate = new Gate();
    engine.faults.append = () => gate.opened;
    const body = messageJson();
    const flood = await RawHttp.to(port);
    flood.send((head(`content-length: ${body.length}`) + body).repeat(MAX_PENDING_REQUESTS));
    await until(() => pendingCount() === MAX_PENDING_REQUESTS);

    const other = await RawHttp.to(port);
    send(other, body);
    const answer = await other.answer();
    expect([answer?.status, answer?.headers.get('retry-after')]).toEqual([429, '1']);
    expect(JSON.parse(answer?.body ?? '')).toEqual({
      acknowledgement: 'NACK',
      reason: expect.stringContaining(`${MAX_PENDING_REQUESTS} publishes, or `),
    });
    expect([pendingCount(), pendingBytes()]).toEqual([MAX_PENDING_REQUESTS, MAX_PENDING_REQUESTS * body.length]);
    gate.open();
    await until(() => pendingCount() === 0);
    expect(pendingBytes()).toBe(0);
    send(other, body);
    expect(await other.answer()).toMatchObject({ status: 200 });
    flood.socket.destroy();
    other.socket.destroy();
  });

  it('is bounded by their headers too, which Node.js keeps whole', async () => {
    await app.close();
    ({ app, port } = await brokerApplication({ engine: (engine = new MemoryEngine()) }));
    const gate = new Gate();
    engine.faults.append = () => gate.opened;
    const body = messageJson();
    const headers = ['host', 'x', 'content-type', 'application/json', 'content-length', String(body.length), 'x-large', 'x'.repeat(15_000)];
    const fitting = Math.floor(MAX_PENDING_HEADER_BYTES / headers.join('').length);
    const large = `${head(`content-length: ${body.length}\r\nx-large: ${'x'.repeat(15_000)}`)}${body}`;
    const flood = await RawHttp.to(port);
    flood.send(large.repeat(fitting));
    await until(() => pendingCount() === fitting);

    const other = await RawHttp.to(port);
    other.send(large);
    const answer = await other.answer();
    expect([answer?.status, answer?.headers.get('retry-after')]).toEqual([429, '1']);
    expect(answer?.body).toContain('bytes of their headers');
    expect([pendingCount(), pendingBytes()]).toEqual([fitting, fitting * body.length]);
    gate.open();
    await until(() => pendingCount() === 0);
    other.send(large);
    expect(await other.answer()).toMatchObject({ status: 200 });
    flood.socket.destroy();
    other.socket.destroy();
  });

  it('does not count what it takes to keep them: a body as large as both limits passes', async () => {
    await app.close();
    const broker = {
      message: { maxBytes: MAX_BYTES },
      batch: { maxBytes: MAX_BYTES },
      pending: { maxBytes: MAX_BYTES },
      segment: { maxBytes: MAX_BYTES },
    };
    ({ app, port } = await brokerApplication({ engine: (engine = new MemoryEngine()), broker }));

    await publish(messageOfBytes(MAX_BYTES)).expect(200);
  });
});

describe('POST /messages over real files', () => {
  const directory = temporaryDirectories();

  it('answers a resend as before after a restart, and goes on at the next offset', async () => {
    const rootDir = await directory();
    for (const expected of [0, 0]) {
      await app.close();
      ({ app, port } = await brokerApplication({ broker: { storage: { rootDir } } }));
      const answer = await publish(messageJson(), { 'idempotency-key': 'order-1' });
      expect(answer.text).toBe(`{"acknowledgement":"ACK","topic":"order.created","offset":${expected}}`);
    }

    expect((await publish(messageJson())).text).toBe('{"acknowledgement":"ACK","topic":"order.created","offset":1}');
  });
});
