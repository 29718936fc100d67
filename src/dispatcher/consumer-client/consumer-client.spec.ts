import { getEventListeners, once } from 'node:events';
import http, { Agent } from 'node:http';
import https from 'node:https';
import net, { type AddressInfo, type Server, type Socket } from 'node:net';
import { PassThrough, type Readable } from 'node:stream';
import tls from 'node:tls';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { HttpService } from '@nestjs/axios';
import { create as createAxios, type CreateAxiosDefaults } from 'axios';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { Host } from '../../core/index.js';
import { HttpServiceConsumerClient, UndiciConsumerClient, type ConsumerClient, type ConsumerReply, type ConsumerRequest } from './index.js';
import { verdictOf } from '../verdict.js';

/** For a test that lets an attempt run out of time. */
const SHORT_MS = 100;
/** For a test in which the deadline must not strike. */
const LONG_MS = 20_000;

const MAX_ANSWER_BYTES = 64 * 1024;
const ACK = '{"acknowledgement":"ACK"}';
const ACK_ANSWER = `HTTP/1.1 200 OK\r\ncontent-length: ${ACK.length}\r\n\r\n${ACK}`;
const HEADERS = { 'content-type': 'application/json', 'mmmq-topic': 'order.created', 'mmmq-offset': '41' };
const BODY = Buffer.from('{"topic":"order.created","content":{"a" : 1.0, "b":"\\ud800 é 한국"},"timestamp":1}');

/** Self-signed, for 127.0.0.1, valid until 2126. It guards nothing. */
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgUIEefG1Vak3RPpRS
ioshU8ZVj+VjChwohVZikLtmB2ChRANCAAT8+umEdHD+jP7GDoE961NsUBN6BBrP
j+42ECOcPSH+bcxSUNFjzLhLDSK3qbgZQx1Svuw+koYlF5YAki5BbItA
-----END PRIVATE KEY-----`;
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBoTCCAUigAwIBAgIUD7E6YHa3S8fld7fqMMX2SRqdDB8wCgYIKoZIzj0EAwIw
HTEbMBkGA1UEAwwSY29uc3VtZXIgb2YgYSB0ZXN0MCAXDTI2MTEzMDEyMzExN1oY
DzIxMjYxMTA2MTIzMTE3WjAdMRswGQYDVQQDDBJjb25zdW1lciBvZiBhIHRlc3Qw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT8+umEdHD+jP7GDoE961NsUBN6BBrP
j+42ECOcPSH+bcxSUNFjzLhLDSK3qbgZQx1Svuw+koYlF5YAki5BbItAo2QwYjAd
BgNVHQ4EFgQU63KJ2Ae9exQYEhZ1CmMxkws6k9IwHwYDVR0jBBgwFoAU63KJ2Ae9
exQYEhZ1CmMxkws6k9IwDwYDVR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAAB
MAoGCCqGSM49BAMCA0cAMEQCIHzzYHbvlR8dacC/pcN5PplSPuQLQwmICOFUW+ED
lO/KAiB7KC6xscMllWQ6/2kZuttrwoQoD9t/NUmMzhfWu2+Hjg==
-----END CERTIFICATE-----`;

/** A consumer that speaks in raw bytes, so that it can break every rule. */
class RawConsumer {
  readonly sockets: Socket[] = [];
  readonly requests: Buffer[] = [];
  closedCount = 0;

  private constructor(private readonly server: Server) {}

  /** @param answer called for each request that has come whole */
  static async start(answer: (socket: Socket, request: Buffer) => void): Promise<RawConsumer> {
    return await RawConsumer.startWith((consumer, socket) => {
      let received = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        const bodyStart = received.indexOf('\r\n\r\n') + 4;
        const length = Number(/content-length: (\d+)/i.exec(received.toString('latin1', 0, bodyStart))?.[1]);
        if (bodyStart < 4 || received.length < bodyStart + length) return;
        const request = received;
        received = Buffer.alloc(0);
        consumer.requests.push(request);
        answer(socket, request);
      });
    });
  }

  /** @param connected called for each connection; it reads by itself what it wants */
  static async startWith(connected: (consumer: RawConsumer, socket: Socket) => void): Promise<RawConsumer> {
    const server = net.createServer((socket) => {
      consumer.sockets.push(socket);
      // What the client does to the connection is what the tests look at, not an error of the consumer.
      socket.on('error', () => {});
      socket.on('close', () => (consumer.closedCount += 1));
      connected(consumer, socket);
    });
    const consumer = new RawConsumer(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    running.push(consumer);
    return consumer;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  host(protocol: 'http' | 'https' = 'http', path = ''): Host {
    return Host.of(`${protocol}://127.0.0.1:${this.port}${path}`);
  }

  /** Every connection that was made is closed again. */
  async allClosed(): Promise<void> {
    await until(() => this.sockets.length > 0 && this.closedCount === this.sockets.length);
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }
}

const running: RawConsumer[] = [];
const agents: (Agent | https.Agent)[] = [];

afterEach(async () => {
  for (const agent of agents.splice(0)) agent.destroy();
  await Promise.all(running.splice(0).map((consumer) => consumer.stop()));
});

function httpService(config: CreateAxiosDefaults = {}): HttpService {
  const httpAgent = new Agent({ keepAlive: true });
  const httpsAgent = new https.Agent({ keepAlive: true });
  agents.push(httpAgent, httpsAgent);
  return new HttpService(createAxios({ httpAgent, httpsAgent, ...config }));
}

function requestTo(host: Host, more: Partial<ConsumerRequest> = {}): ConsumerRequest {
  return {
    host,
    path: '/messages',
    headers: HEADERS,
    body: BODY,
    timeoutMs: LONG_MS,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    signal: new AbortController().signal,
    ...more,
  };
}

function countActive(kind: string): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === kind).length;
}

/** A listener whose queue of connections is full: a further one is neither taken nor refused. */
async function silentPort(): Promise<{ port: number; stop: () => Promise<void> }> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
     });`,
    { eval: true },
  );
  const [port] = (await once(worker, 'message')) as [number];
  const fillers = Array.from({ length: 6 }, () => net.connect(port, '127.0.0.1').on('error', () => {}));
  await until(() => fillers.filter((socket) => !socket.connecting).length >= 2);
  return {
    port,
    stop: async () => {
      for (const socket of fillers) socket.destroy();
      await worker.terminate();
    },
  };
}

const failure = (reason: unknown): unknown => ({ kind: 'failure', reason });
const NO_ANSWER_IN_TIME = failure(`no answer within ${SHORT_MS} ms`);
const STOPPING = failure('broker is stopping');
const TOO_LARGE = failure('answer larger than 65536 bytes');
/** Nobody asked for 100. What the clients make of it is the one thing in which they differ. */
const CONTINUED = `HTTP/1.1 100 Continue\r\n\r\n${ACK_ANSWER}`;
const CUT_OFF = failure(expect.stringMatching(/^connection (reset|closed before the answer was complete)( \([A-Z_]+\))?$/));

describe.each<[string, () => ConsumerClient]>([
  ['UndiciConsumerClient', () => new UndiciConsumerClient()],
  ['HttpServiceConsumerClient', () => new HttpServiceConsumerClient(httpService())],
])('%s', (_name, create) => {
  let client: ConsumerClient;

  beforeEach(() => {
    client = create();
  });

  afterEach(async () => {
    await client.close();
  });

  async function reply(answer: string | Buffer, more: Partial<ConsumerRequest> = {}): Promise<ConsumerReply> {
    const consumer = await RawConsumer.start((socket) => socket.write(answer));
    return await client.post(requestTo(consumer.host(), more));
  }

  describe('the request', () => {
    it('is a POST to /messages below the path of the host, with the headers and the exact bytes of the message', async () => {
      const consumer = await consumerThatAcks();
      await client.post(requestTo(consumer.host('http', '/base/path')));
      const [head, body] = split(consumer.requests[0]);
      expect(head).toMatch(/^POST \/base\/path\/messages HTTP\/1\.1\r\n/);
      expect(head).toMatch(new RegExp(`^host: 127\\.0\\.0\\.1:${consumer.port}$`, 'im'));
      expect(head).toMatch(new RegExp(`^content-length: ${BODY.length}$`, 'im'));
      for (const [name, value] of Object.entries(HEADERS)) expect(head).toMatch(new RegExp(`^${name}: ${value}$`, 'im'));
      expect(body).toEqual(BODY);
    });

    it('goes to /messages of a host without a path', async () => {
      const consumer = await consumerThatAcks();
      await client.post(requestTo(consumer.host()));
      expect(split(consumer.requests[0])[0]).toMatch(/^POST \/messages HTTP/);
    });

    it('goes to where it says below the host', async () => {
      const consumer = await consumerThatAcks();
      await client.post(requestTo(consumer.host('http', '/base'), { path: '/messages/batch' }));
      await client.post(requestTo(consumer.host(), { path: '/messages/batch' }));
      expect(consumer.requests.map((request) => split(request)[0].split('\r\n', 1)[0])).toEqual([
        'POST /base/messages/batch HTTP/1.1',
        'POST /messages/batch HTTP/1.1',
      ]);
    });

    it('carries the largest message unchanged', async () => {
      const consumer = await consumerThatAcks();
      const body = Buffer.alloc(8 * 1024 * 1024);
      for (let position = 0; position < body.length; position += 4) body.writeUInt32BE(position, position);
      expect(await client.post(requestTo(consumer.host(), { body }))).toMatchObject({ kind: 'answer', status: 200 });
      expect(split(consumer.requests[0])[1].equals(body)).toBe(true);
    });

    it('asks for no encoding', async () => {
      const consumer = await consumerThatAcks();
      await client.post(requestTo(consumer.host()));
      expect(split(consumer.requests[0])[0]).not.toMatch(/^accept-encoding:/im);
    });

    it('goes straight to the consumer, whatever proxy the environment names', async () => {
      const proxy = await RawConsumer.start((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nproxy'));
      const consumer = await consumerThatAcks();
      const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'];
      const before = names.map((name) => process.env[name]);
      for (const name of names) process.env[name] = `http://127.0.0.1:${proxy.port}`;
      try {
        expect(await client.post(requestTo(consumer.host()))).toMatchObject({ kind: 'answer', body: Buffer.from(ACK) });
      } finally {
        names.forEach((name, index) => {
          if (before[index] === undefined) delete process.env[name];
          else process.env[name] = before[index];
        });
      }
      expect(proxy.sockets).toHaveLength(0);
    });
  });

  describe('an answer', () => {
    it('is handed on with its status and the bytes of its body', async () => {
      expect(await reply(ACK_ANSWER)).toEqual({ kind: 'answer', status: 200, body: Buffer.from(ACK), retryAfter: undefined });
    });

    it.each([201, 202, 206, 226, 300, 400, 401, 404, 409, 413, 429, 500, 502, 503, 599])(
      'is an answer with status %i too',
      async (status) => {
        expect(await reply(`HTTP/1.1 ${status} X\r\ncontent-length: 2\r\n\r\nno`)).toMatchObject({
          kind: 'answer',
          status,
          body: Buffer.from('no'),
        });
      },
    );

    it.each([301, 302, 303, 307, 308])('with status %i is not followed to where it points', async (status) => {
      const other = await consumerThatAcks();
      const location = other.host().url('/messages');
      expect(await reply(`HTTP/1.1 ${status} X\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`)).toMatchObject({ status });
      expect(other.sockets).toHaveLength(0);
    });

    it.each([
      '204 No Content\r\n',
      '304 Not Modified\r\n',
      '200 OK\r\ncontent-length: 0\r\n',
      '205 Reset Content\r\ncontent-length: 0\r\n',
    ])('may have no body: %j', async (head) => {
      expect(await reply(`HTTP/1.1 ${head}\r\n`)).toMatchObject({
        kind: 'answer',
        status: Number(head.slice(0, 3)),
        body: Buffer.alloc(0),
      });
    });

    it('hands on Retry-After as it came, the first of several', async () => {
      expect(await reply('HTTP/1.1 503 X\r\nRetry-After: 120\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n')).toMatchObject({
        status: 503,
        retryAfter: '120',
      });
    });

    it('may come in many pieces', async () => {
      const consumer = await RawConsumer.start((socket) => {
        socket.setNoDelay(true);
        const bytes = [
          ...Buffer.from(
            `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n${ACK.slice(0, 5)}\r\n14\r\n${ACK.slice(5)}\r\n0\r\n\r\n`,
          ),
        ];
        const writeNext = (): void => {
          const byte = bytes.shift();
          if (byte !== undefined) socket.write(Buffer.of(byte), () => setImmediate(writeNext));
        };
        writeNext();
      });
      expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200, body: Buffer.from(ACK) });
    });

    it('may end with its connection', async () => {
      const consumer = await RawConsumer.start((socket) => socket.end(`HTTP/1.1 200 OK\r\n\r\n${ACK}`));
      expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200, body: Buffer.from(ACK) });
      await consumer.allClosed();
    });

    it('may have trailers', async () => {
      expect(
        await reply(
          `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: retry-after\r\n\r\n19\r\n${ACK}\r\n0\r\nretry-after: 9\r\n\r\n`,
        ),
      ).toEqual({ kind: 'answer', status: 200, body: Buffer.from(ACK), retryAfter: undefined });
    });

    it.each(['102 Processing', '103 Early Hints\r\nlink: </x>', '103 Early Hints\r\ncontent-length: 70000\r\nretry-after: 1'])(
      'may be announced by 1xx: %j',
      async (head) => {
        expect(await reply(`HTTP/1.1 ${head}\r\n\r\nHTTP/1.1 ${head}\r\n\r\n${ACK_ANSWER}`)).toEqual({
          kind: 'answer',
          status: 200,
          body: Buffer.from(ACK),
          retryAfter: undefined,
        });
      },
    );

    it('stays as it is when it is encoded', async () => {
      const body = gzipSync(ACK);
      const head = `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`;
      expect(await reply(Buffer.concat([Buffer.from(head), body]))).toMatchObject({ status: 200, body });
    });

    it('may come before the request has been read; its connection is not used again', async () => {
      const consumer = await RawConsumer.startWith((_consumer, socket) => {
        socket.once('data', () => {
          socket.pause();
          socket.write('HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n');
        });
      });
      const body = Buffer.alloc(64 * 1024 * 1024);
      expect(await client.post(requestTo(consumer.host(), { body }))).toMatchObject({ kind: 'answer', status: 413 });
      for (const socket of consumer.sockets) socket.resume();
      await consumer.allClosed();
    });

    it('that comes early and is followed by a reset ends the attempt either way', async () => {
      const consumer = await RawConsumer.startWith((_consumer, socket) => {
        socket.once('data', () => {
          socket.pause();
          socket.write('HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n', () => socket.resetAndDestroy());
        });
      });
      const body = Buffer.alloc(64 * 1024 * 1024);
      expect(['answer', 'failure']).toContain((await client.post(requestTo(consumer.host(), { body }))).kind);
    });
  });

  describe('the size of an answer', () => {
    const full = Buffer.alloc(MAX_ANSWER_BYTES, 'x');
    const tooLong = Buffer.alloc(MAX_ANSWER_BYTES + 1, 'x');
    it.each([
      ['with its length', sized(full)],
      ['in chunks', chunked(full)],
    ])('may be 64 KiB: %s', async (_how, answer) => {
      expect(await reply(answer)).toMatchObject({ kind: 'answer', status: 200, body: full });
    });

    it.each([
      ['with its length', sized(tooLong)],
      ['in chunks', chunked(tooLong)],
      ['with its connection as its end', Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n'), tooLong])],
    ])('is a failure with one byte more: %s', async (_how, answer) => {
      const consumer = await RawConsumer.start((socket) => socket.write(answer));
      expect(await client.post(requestTo(consumer.host()))).toEqual(TOO_LARGE);
      await consumer.allClosed();
    });

    it('is bounded by what the request says', async () => {
      expect(await reply(sized(tooLong), { maxAnswerBytes: tooLong.length })).toMatchObject({ kind: 'answer', body: tooLong });
      expect(await reply(chunked(tooLong), { maxAnswerBytes: tooLong.length })).toMatchObject({ kind: 'answer', body: tooLong });
      expect(await reply(sized(Buffer.from(ACK)), { maxAnswerBytes: 24 })).toEqual(failure('answer larger than 24 bytes'));
      expect(await reply(chunked(Buffer.from(ACK)), { maxAnswerBytes: 24 })).toEqual(failure('answer larger than 24 bytes'));
    });

    it('is a failure as soon as the length is announced', async () => {
      const consumer = await RawConsumer.start((socket) => socket.write('HTTP/1.1 500 X\r\ncontent-length: 65537\r\n\r\n'));
      expect(await client.post(requestTo(consumer.host()))).toEqual(TOO_LARGE);
      await consumer.allClosed();
    });

    it('ends a body without end', async () => {
      const consumer = await RawConsumer.start((socket) => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
        const writeOn = (): void => {
          if (!socket.destroyed) socket.write(`400\r\n${'x'.repeat(1024)}\r\n`, () => setImmediate(writeOn));
        };
        writeOn();
      });
      expect(await client.post(requestTo(consumer.host()))).toEqual(TOO_LARGE);
      await consumer.allClosed();
    });
  });

  describe('the deadline', () => {
    it('ends an attempt whose connection is neither taken nor refused', async () => {
      const silent = await silentPort();
      const before = countActive('ConnectWrap');
      try {
        const host = Host.of(`http://127.0.0.1:${silent.port}`);
        expect(await client.post(requestTo(host, { timeoutMs: SHORT_MS }))).toEqual(NO_ANSWER_IN_TIME);
        await until(() => countActive('ConnectWrap') === before);
      } finally {
        await silent.stop();
      }
    });

    it('ends an attempt whose TLS connection comes to nothing', async () => {
      const consumer = await RawConsumer.startWith((_consumer, socket) => socket.resume());
      expect(await client.post(requestTo(consumer.host('https'), { timeoutMs: SHORT_MS }))).toEqual(NO_ANSWER_IN_TIME);
      await consumer.allClosed();
    });

    it.each<[string, (socket: Socket) => void]>([
      ['nothing', () => {}],
      ['half a header', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-le')],
      ['headers and no body', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\n')],
      ['a body that does not end', (socket) => socket.write(`HTTP/1.1 200 OK\r\n\r\n${ACK}`)],
      ['1xx alone', (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n')],
    ])('ends an attempt that brings %s', async (_what, answer) => {
      const consumer = await RawConsumer.start(answer);
      expect(await client.post(requestTo(consumer.host(), { timeoutMs: SHORT_MS }))).toEqual(NO_ANSWER_IN_TIME);
      await consumer.allClosed();
    });

    it.each([
      ['header', 'HTTP/1.1 200 OK\r\nx: '],
      ['body', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffff\r\n'],
    ])('ends an attempt whose %s drips', async (_what, start) => {
      const consumer = await RawConsumer.start((socket) => {
        socket.write(start);
        const drip = setInterval(() => socket.write('x'), 5);
        socket.on('close', () => clearInterval(drip));
      });
      expect(await client.post(requestTo(consumer.host(), { timeoutMs: SHORT_MS }))).toEqual(NO_ANSWER_IN_TIME);
      await consumer.allClosed();
    });

    it('ends an attempt whose request is not read', async () => {
      const consumer = await RawConsumer.startWith((_consumer, socket) => socket.pause());
      const body = Buffer.alloc(64 * 1024 * 1024);
      expect(await client.post(requestTo(consumer.host(), { body, timeoutMs: SHORT_MS }))).toEqual(NO_ANSWER_IN_TIME);
      for (const socket of consumer.sockets) socket.resume();
      await consumer.allClosed();
    });
  });

  describe('the signal', () => {
    it('keeps an attempt from starting when it is already aborted', async () => {
      const consumer = await consumerThatAcks();
      expect(await client.post(requestTo(consumer.host(), { signal: AbortSignal.abort() }))).toEqual(STOPPING);
      expect(consumer.sockets).toHaveLength(0);
    });

    it('ends an attempt that is still connecting', async () => {
      const stop = new AbortController();
      const consumer = await RawConsumer.startWith((_consumer, socket) => {
        socket.resume();
        stop.abort();
      });
      expect(await client.post(requestTo(consumer.host('https'), { signal: stop.signal }))).toEqual(STOPPING);
      await consumer.allClosed();
    });

    it.each<[string, string]>([
      ['waits for its answer', ''],
      ['reads its answer', 'HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\n{"ackn'],
    ])('ends an attempt that %s', async (_what, start) => {
      const stop = new AbortController();
      const consumer = await RawConsumer.start((socket) => socket.write(`${start}`, () => setImmediate(() => stop.abort())));
      expect(await client.post(requestTo(consumer.host(), { signal: stop.signal }))).toEqual(STOPPING);
      await consumer.allClosed();
    });

    it('is let go of after every attempt, whatever came of it', async () => {
      const stop = new AbortController();
      const { signal } = stop;
      const consumer = await consumerThatAcks();
      const silent = await RawConsumer.start(() => {});
      await client.post(requestTo(consumer.host(), { signal }));
      await client.post(requestTo(consumer.host(), { signal }));
      await client.post(requestTo(silent.host(), { signal, timeoutMs: SHORT_MS }));
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    });
  });

  describe('a failure', () => {
    it('says that the connection was refused', async () => {
      const consumer = await RawConsumer.start(() => {});
      const host = consumer.host();
      await running.pop()?.stop();
      expect(await client.post(requestTo(host))).toEqual(failure('connection refused (ECONNREFUSED)'));
    });

    it.each<[string, (socket: Socket) => void]>([
      ['is reset instead of an answer', (socket) => socket.resetAndDestroy()],
      ['ends instead of an answer', (socket) => socket.end()],
      ['ends in the headers', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-len')],
      ['ends in a body', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\n{"acknowledgement"')],
      ['ends in a chunk', (socket) => socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n19\r\n{"ack')],
      ['ends before the last chunk', (socket) => socket.end(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n19\r\n${ACK}\r\n`)],
    ])('comes of a connection that %s', async (_what, answer) => {
      const consumer = await RawConsumer.start(answer);
      expect(await client.post(requestTo(consumer.host()))).toEqual(CUT_OFF);
      await consumer.allClosed();
    });

    it.each([
      ['an upgrade', 'HTTP/1.1 101 X\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n{"acknowledgement":"ACK"}'],
      ['an upgrade to nothing', `HTTP/1.1 101 X\r\ncontent-length: ${ACK.length}\r\n\r\n${ACK}`],
      ['100 Continue and no more', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ])('or another improper outcome comes of %s, which nobody asked for', async (_what, answer) => {
      const consumer = await RawConsumer.start((socket) => socket.write(answer));
      expect(verdictOf(await client.post(requestTo(consumer.host(), { timeoutMs: SHORT_MS })))).toMatchObject({ kind: 'improper' });
      await client.close();
      for (const agent of agents) agent.destroy();
      await consumer.allClosed();
    });

    it.each([
      ['words', 'hello, this is no HTTP\r\n\r\n'],
      ['another version', 'HTTP/3.9 200 OK\r\n\r\n'],
      ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nno'],
      ['a length that is none', 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n'],
      ['a length that overflows', 'HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n'],
      ['a chunk that is none', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'],
    ])('comes of an answer that is not HTTP: %s', async (_what, answer) => {
      const consumer = await RawConsumer.start((socket) => socket.write(answer));
      // Which of the wrongs is named depends on how far the client's parser has come.
      expect(await client.post(requestTo(consumer.host()))).toEqual(
        failure(expect.stringMatching(/^(answer is not HTTP|answer larger than|connection (reset|closed before))/)),
      );
      await consumer.allClosed();
    });

    it.each([
      ['one', `x: ${'y'.repeat(http.maxHeaderSize + 1)}\r\n`],
      ['many', 'x: y\r\n'.repeat(http.maxHeaderSize)],
    ])('comes of headers that are too large: %s', async (_what, headers) => {
      const consumer = await RawConsumer.start((socket) => socket.write(`HTTP/1.1 200 OK\r\n${headers}\r\n`));
      expect(await client.post(requestTo(consumer.host()))).toEqual(failure(expect.stringMatching(/^headers of the answer too large/)));
      await consumer.allClosed();
    });

    it('comes of TLS spoken to a consumer that speaks none', async () => {
      const consumer = await RawConsumer.startWith((_consumer, socket) => {
        socket.once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
      });
      expect(await client.post(requestTo(consumer.host('https')))).toEqual(failure(expect.stringMatching(/^no TLS connection \(/)));
      await consumer.allClosed();
    });

    it('comes of HTTP spoken to a consumer that speaks TLS', async () => {
      const { host } = await tlsConsumer();
      const plain = Host.of(host.origin.replace('https', 'http'));
      expect((await client.post(requestTo(plain, { timeoutMs: SHORT_MS }))).kind).toBe('failure');
    });

    it('comes of a certificate that is not trusted', async () => {
      const { host, received } = await tlsConsumer();
      expect(await client.post(requestTo(host))).toEqual(failure('no TLS connection (DEPTH_ZERO_SELF_SIGNED_CERT)'));
      expect(received).toHaveLength(0);
    });

    it('or a harmless request comes of a header that HTTP cannot carry', async () => {
      const consumer = await consumerThatAcks();
      const headers = { ...HEADERS, 'mmmq-key': 'a\r\ninjected: b' };
      expect(await client.post(requestTo(consumer.host(), { headers }))).toHaveProperty('kind');
      for (const request of consumer.requests) expect(split(request)[0]).not.toMatch(/^injected:/m);
    });
  });

  it('speaks TLS to a consumer whose certificate is trusted', async () => {
    const { host, received } = await tlsConsumer();
    const connect = tls.connect.bind(tls) as (options: tls.ConnectionOptions) => tls.TLSSocket;
    const trusting = jest
      .spyOn(tls, 'connect')
      .mockImplementation((options: unknown) => connect({ ...(options as tls.ConnectionOptions), ca: CERTIFICATE }));
    try {
      expect(await client.post(requestTo(host))).toMatchObject({ status: 200, body: Buffer.from(ACK) });
      expect(received).toEqual([BODY]);
    } finally {
      trusting.mockRestore();
      await client.close();
    }
  });

  describe('a connection', () => {
    it('is used again for the next message', async () => {
      const consumer = await consumerThatAcks();
      for (let message = 0; message < 20; message += 1) {
        expect(await client.post(requestTo(consumer.host()))).toMatchObject({ kind: 'answer', status: 200 });
      }
      expect(consumer.requests).toHaveLength(20);
      expect(consumer.sockets).toHaveLength(1);
    });

    it('is used again after an answer that is none of the wanted ones', async () => {
      const consumer = await RawConsumer.start((socket) => socket.write('HTTP/1.1 500 X\r\ncontent-length: 2\r\n\r\nno'));
      await client.post(requestTo(consumer.host()));
      await client.post(requestTo(consumer.host()));
      expect(consumer.sockets).toHaveLength(1);
    });

    it('is made anew after the consumer has closed it', async () => {
      const consumer = await RawConsumer.start((socket) => socket.end(ACK_ANSWER.replace('\r\n', '\r\nconnection: close\r\n')));
      for (let message = 0; message < 3; message += 1) {
        expect(await client.post(requestTo(consumer.host()))).toMatchObject({ kind: 'answer', status: 200 });
        await consumer.allClosed();
      }
      expect(consumer.sockets).toHaveLength(3);
    });

    it('that turns out to be dead when it is used again gives a failure, and the next attempt succeeds', async () => {
      let count = 0;
      const consumer = await RawConsumer.start((socket) => {
        count += 1;
        if (count === 2) socket.resetAndDestroy();
        else socket.write(ACK_ANSWER);
      });
      expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200 });
      expect(await client.post(requestTo(consumer.host()))).toEqual(CUT_OFF);
      expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200 });
      expect(count).toBe(3);
    });

    it('on which bytes come unasked does not lend them to the next answer', async () => {
      const consumer = await RawConsumer.start((socket) => socket.write(ACK_ANSWER + ACK_ANSWER.replaceAll('ACK', 'BAD')));
      expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200, body: Buffer.from(ACK) });
      await until(() => consumer.closedCount === 1);
      expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200, body: Buffer.from(ACK) });
    });

    it('serves one message at a time, so that fifty at once get their own answers', async () => {
      const waiting: (() => void)[] = [];
      const consumer = await RawConsumer.start((socket, request) => {
        const body = split(request)[1];
        waiting.push(() => socket.write(sized(body)));
        // All fifty are under way at the same time, and answered in another order than they came.
        if (waiting.length === 50) for (const answer of waiting.splice(0).toReversed()) answer();
      });
      for (let round = 0; round < 2; round += 1) {
        const bodies = Array.from({ length: 50 }, (_, message) => Buffer.from(`message ${round}/${message}`));
        const replies = await Promise.all(bodies.map((body) => client.post(requestTo(consumer.host(), { body }))));
        expect(replies.map((outcome) => outcome.kind === 'answer' && outcome.body.toString())).toEqual(bodies.map(String));
      }
      expect(consumer.sockets).toHaveLength(50);
    });

    it('that fails costs the others nothing', async () => {
      const silent = await RawConsumer.start(() => {});
      const consumer = await consumerThatAcks();
      const slow = client.post(requestTo(silent.host(), { timeoutMs: SHORT_MS }));
      expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200 });
      expect(await slow).toEqual(NO_ANSWER_IN_TIME);
      expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200 });
      expect(consumer.sockets).toHaveLength(1);
    });
  });

  describe('close()', () => {
    it('leaves nothing that keeps the process alive', async () => {
      const consumer = await RawConsumer.start((socket) => {
        socket.unref();
        socket.write(ACK_ANSWER);
      });
      await until(() => countActive('TCPSocketWrap') === 0);
      const timers = countActive('Timeout');
      await Promise.all([client.post(requestTo(consumer.host())), client.post(requestTo(consumer.host()))]);
      await client.close();
      await until(() => countActive('TCPSocketWrap') === 0);
      await until(() => countActive('Timeout') <= timers);
    });

    it('can be called again, and leaves an attempt under way to its own signal', async () => {
      const stop = new AbortController();
      const consumer = await RawConsumer.start(() => {});
      const attempt = client.post(requestTo(consumer.host(), { signal: stop.signal }));
      await until(() => consumer.requests.length === 1);
      await client.close();
      await client.close();
      expect(consumer.closedCount).toBe(0);
      stop.abort();
      expect(await attempt).toEqual(STOPPING);
      await consumer.allClosed();
    });

    it('lets an attempt under way be answered', async () => {
      const consumer = await RawConsumer.start(() => {});
      const attempt = client.post(requestTo(consumer.host()));
      await until(() => consumer.requests.length === 1);
      await client.close();
      consumer.sockets[0]?.write(ACK_ANSWER);
      expect(await attempt).toMatchObject({ kind: 'answer', status: 200 });
    });

    it('is the end: a later attempt fails', async () => {
      const consumer = await consumerThatAcks();
      await client.close();
      expect(await client.post(requestTo(consumer.host()))).toEqual(STOPPING);
      expect(consumer.sockets).toHaveLength(0);
    });
  });
});

describe('UndiciConsumerClient', () => {
  it.each([
    ['100 Continue', CONTINUED, '100 Continue that was not asked for'],
    ['upgrade', 'HTTP/1.1 101 X\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n', 'upgrade that was not asked for'],
  ])('takes an unasked %s for a failure, and says so', async (_what, answer, reason) => {
    const client = new UndiciConsumerClient();
    const consumer = await RawConsumer.start((socket) => socket.write(answer));
    expect(await client.post(requestTo(consumer.host()))).toEqual(failure(reason));
    await consumer.allClosed();
  });

  it('closes its idle connections', async () => {
    const client = new UndiciConsumerClient();
    const consumer = await consumerThatAcks();
    await Promise.all([client.post(requestTo(consumer.host())), client.post(requestTo(consumer.host()))]);
    expect(consumer.closedCount).toBe(0);
    await client.close();
    await consumer.allClosed();
  });

  it('closes the connection of an attempt that is answered after close()', async () => {
    const client = new UndiciConsumerClient();
    const consumer = await RawConsumer.start(() => {});
    const attempt = client.post(requestTo(consumer.host()));
    await until(() => consumer.requests.length === 1);
    await client.close();
    consumer.sockets[0]?.write(ACK_ANSWER);
    await attempt;
    await consumer.allClosed();
  });
});

describe('HttpServiceConsumerClient', () => {
  it('passes over an unasked 100 Continue', async () => {
    const client = new HttpServiceConsumerClient(httpService());
    const consumer = await RawConsumer.start((socket) => socket.write(CONTINUED));
    expect(await client.post(requestTo(consumer.host()))).toMatchObject({ kind: 'answer', status: 200, body: Buffer.from(ACK) });
  });

  it("runs the application's interceptors", async () => {
    const service = httpService();
    const statuses: number[] = [];
    service.axiosRef.interceptors.request.use((config) => {
      config.headers.set('authorization', 'Bearer token');
      return config;
    });
    service.axiosRef.interceptors.response.use((response) => {
      statuses.push(response.status);
      return response;
    });
    const consumer = await consumerThatAcks();
    const client = new HttpServiceConsumerClient(service);
    expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200 });
    expect(split(consumer.requests[0])[0]).toMatch(/^authorization: Bearer token$/im);
    expect(statuses).toEqual([200]);
  });

  it.each<[string, (service: HttpService) => unknown, RegExp]>([
    ['throws', ({ axiosRef }) => axiosRef.interceptors.request.use(() => Promise.reject(new Error('secret'))), /^the request failed/],
    [
      'throws nothing in particular',
      ({ axiosRef }) => axiosRef.interceptors.response.use(() => Promise.reject(undefined as unknown)),
      /^the request failed$/,
    ],
    [
      'hands on the body alone',
      ({ axiosRef }) => axiosRef.interceptors.response.use((response) => response.data as never),
      /no answer stream that can be read$/,
    ],
    [
      'hands on nothing',
      ({ axiosRef }) => axiosRef.interceptors.response.use(() => undefined as never),
      /no answer stream that can be read$/,
    ],
    [
      'reads the body',
      ({ axiosRef }) => axiosRef.interceptors.response.use((response) => ({ ...response, data: 'read' })),
      /no answer stream that can be read$/,
    ],
  ])('gives a failure when an interceptor %s', async (_what, arrange, reason) => {
    const service = httpService();
    arrange(service);
    const consumer = await consumerThatAcks();
    const client = new HttpServiceConsumerClient(service);
    const outcome = await client.post(requestTo(consumer.host()));
    expect(outcome).toEqual(failure(expect.stringMatching(reason)));
    expect(JSON.stringify(outcome)).not.toContain('secret');
  });

  it('gives a failure when an interceptor hands on a stream that it has read to its end', async () => {
    const service = httpService();
    service.axiosRef.interceptors.response.use(async (response) => {
      await (response.data as Readable).toArray();
      return response;
    });
    const consumer = await consumerThatAcks();
    const client = new HttpServiceConsumerClient(service);
    expect(await client.post(requestTo(consumer.host()))).toEqual(failure('the HttpService hands on no answer stream that can be read'));
  });

  it('gives a failure when an interceptor destroys the stream', async () => {
    const service = httpService();
    service.axiosRef.interceptors.response.use((response) => {
      // Through a stream of its own, as an interceptor that observes the body would do.
      const body = new PassThrough();
      setImmediate(() => body.destroy());
      return { ...response, data: body };
    });
    const consumer = await consumerThatAcks();
    const client = new HttpServiceConsumerClient(service);
    expect(await client.post(requestTo(consumer.host()))).toEqual(CUT_OFF);
    await consumer.allClosed();
  });

  it('closes the connection of an answer that an interceptor brings too late', async () => {
    const service = httpService();
    let isOver = false;
    service.axiosRef.interceptors.response.use(async (response) => {
      await until(() => isOver);
      return await createAxios().request({ url: response.config.url ?? '', method: 'post', data: 'x', responseType: 'stream' });
    });
    const consumer = await RawConsumer.start((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\n'));
    const client = new HttpServiceConsumerClient(service);
    expect(await client.post(requestTo(consumer.host(), { timeoutMs: SHORT_MS }))).toEqual(NO_ANSWER_IN_TIME);
    isOver = true;
    await until(() => consumer.sockets.length === 2);
    await consumer.allClosed();
  });

  it.each(['request', 'response'] as const)('bounds an attempt whose %s interceptor does not end', async (which) => {
    const service = httpService();
    service.axiosRef.interceptors[which].use(() => new Promise<never>(() => {}));
    const consumer = await consumerThatAcks();
    const client = new HttpServiceConsumerClient(service);
    expect(await client.post(requestTo(consumer.host(), { timeoutMs: SHORT_MS }))).toEqual(NO_ANSWER_IN_TIME);
    if (which === 'response') await consumer.allClosed();
  });

  it('keeps to the port where the application has configured axios otherwise', async () => {
    const consumer = await consumerThatAcks();
    const service = httpService({
      baseURL: 'http://127.0.0.1:1/elsewhere',
      allowAbsoluteUrls: false,
      timeout: 1,
      maxContentLength: 3,
      maxBodyLength: 3,
      maxRedirects: 5,
      responseType: 'json',
      validateStatus: () => false,
    });
    const client = new HttpServiceConsumerClient(service);
    expect(await client.post(requestTo(consumer.host()))).toMatchObject({ kind: 'answer', body: Buffer.from(ACK) });
  });

  it("goes through the proxy that the application's axios configuration names", async () => {
    const proxy = await consumerThatAcks();
    const consumer = await consumerThatAcks();
    const service = httpService({ proxy: { host: '127.0.0.1', port: proxy.port, protocol: 'http' } });
    const client = new HttpServiceConsumerClient(service);
    expect(await client.post(requestTo(consumer.host()))).toMatchObject({ status: 200 });
    expect(proxy.requests).toHaveLength(1);
    expect(consumer.requests).toHaveLength(0);
  });
});

function sized(body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`), body]);
}

function chunked(body: Buffer): Buffer {
  const start = `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`;
  return Buffer.concat([Buffer.from(start), body, Buffer.from('\r\n0\r\n\r\n')]);
}

async function consumerThatAcks(): Promise<RawConsumer> {
  return await RawConsumer.start((socket) => socket.write(ACK_ANSWER));
}

/** A consumer behind TLS that acknowledges and keeps the bodies. */
async function tlsConsumer(): Promise<{ host: Host; received: Buffer[] }> {
  const received: Buffer[] = [];
  const server = https.createServer({ key: KEY, cert: CERTIFICATE }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push(Buffer.concat(chunks));
      response.end(ACK);
    });
  });
  const front = await RawConsumer.startWith((_consumer, socket) => server.emit('connection', socket));
  return { host: front.host('https'), received };
}

function split(request: Buffer | undefined): [head: string, body: Buffer] {
  if (request === undefined) throw new Error('no request came');
  const end = request.indexOf('\r\n\r\n');
  return [request.subarray(0, end).toString('latin1'), request.subarray(end + 4)];
}
