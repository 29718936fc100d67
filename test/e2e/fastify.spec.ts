import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Body, Controller, type INestApplication, Post } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import request from 'supertest';
import { PublishBodyReader } from '../../src/broker/publish-body.reader.js';
import { brokerApplication } from '../support/broker-application.js';
import { MemoryEngine } from '../support/memory-engine.js';
import { until } from '../support/until.js';

const BODY = '{"topic":"order.created","content":{"amount":1.0}}';

@Controller('orders')
class OrdersController {
  @Post()
  create(@Body() order: unknown): unknown {
    return { received: order };
  }
}

/** What @fastify/helmet and access logs do: hooks, and headers that are set on the reply. */
interface Hooks {
  addHook(
    name: 'onRequest',
    hook: (request: unknown, reply: { header(name: string, value: string): void }, done: () => void) => void,
  ): void;
  addHook(name: 'onResponse', hook: (request: { url: string }, reply: { statusCode: number }, done: () => void) => void): void;
  addHook(name: 'preHandler', hook: (request: { headers: Record<string, unknown> }, reply: unknown, done: () => void) => void): void;
}

describe('a broker inside an application on Fastify', () => {
  let app: INestApplication;
  let engine: MemoryEngine;
  let finished: string[];
  let contentTypes: unknown[];

  beforeEach(async () => {
    engine = new MemoryEngine();
    finished = [];
    contentTypes = [];
    const adapter = new FastifyAdapter();
    const hooks = adapter.getInstance() as unknown as Hooks;
    hooks.addHook('onRequest', (_request, reply, done) => {
      reply.header('x-frame-options', 'SAMEORIGIN');
      done();
    });
    hooks.addHook('preHandler', ({ headers }, _reply, done) => {
      contentTypes.push(headers['content-type']);
      done();
    });
    hooks.addHook('onResponse', ({ url }, { statusCode }, done) => {
      finished.push(`${url} ${statusCode}`);
      done();
    });
    const broker = { batch: { maxBytes: 8 * 1024 * 1024 }, message: { maxBytes: 4 * 1024 * 1024 } };
    const configure = (each: { enableCors(): void }): void => each.enableCors();
    ({ app } = await brokerApplication({ engine, adapter, broker, configure, metadata: { controllers: [OrdersController] } }));
  });
  afterEach(() => app.close());

  const post = (path: string, body: string, type = 'application/json'): request.Test =>
    request(app.getHttpServer())
      .post(path)
      .set('content-type', type)
      .serialize((sent: unknown) => sent as string)
      .send(body);

  it('answers a publish with the headers that plugins have set, and its hooks hear of it', async () => {
    const answer = await post('/messages', BODY).set('origin', 'http://shop.example');
    expect([answer.status, answer.text]).toEqual([200, '{"acknowledgement":"ACK","topic":"order.created","offset":0}']);
    expect(answer.headers).toMatchObject({ 'x-frame-options': 'SAMEORIGIN', 'access-control-allow-origin': '*' });
    await until(() => finished.length > 0);
    expect([finished, contentTypes]).toEqual([['/messages 200'], ['application/json']]);
  });

  it('takes messages and batches that are larger than its own limit, and types that it has no parser for', async () => {
    const message = `{"topic":"t","content":"${'x'.repeat(3 * 1024 * 1024)}"}`;
    expect((await post('/messages', message)).status).toBe(200);
    expect((await post('/messages/batch', `${message}\n${message}`, 'application/x-ndjson')).body).toMatchObject([
      { offset: 1 },
      { offset: 2 },
    ]);
  });

  it('refuses as the broker does, not as Fastify does', async () => {
    expect((await post('/messages', BODY, 'text/plain')).body).toMatchObject({ acknowledgement: 'NACK', field: 'content-type' });
    expect((await post('/messages', '{"topic":1}')).body).toMatchObject({ acknowledgement: 'NACK', field: 'topic' });
    const large = await post('/messages', `{"topic":"t","content":"${'x'.repeat(5 * 1024 * 1024)}"}`);
    expect([large.status, large.body]).toMatchObject([413, { acknowledgement: 'NACK' }]);
    expect((await post('/messages', '')).body).toMatchObject({ acknowledgement: 'NACK', reason: expect.stringContaining('empty') });
    expect(app.get(PublishBodyReader).pending).toMatchObject({ bytes: 0, count: 0 });
  });

  it('takes a body in chunks', async () => {
    const body = new Blob([BODY]).stream();
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${await app.getUrl()}/messages`, { method: 'POST', headers, body, duplex: 'half' });
    expect(answer.status).toBe(200);
    expect(engine.logs.get('order.created')?.payloads[0]?.toString()).toContain('"content":{"amount":1.0},"timestamp":');
  });

  it("leaves the application's own routes alone", async () => {
    expect((await post('/orders', BODY)).body).toEqual({ received: { topic: 'order.created', content: { amount: 1 } } });
    expect((await post('/orders', BODY, 'application/x-ndjson')).status).toBe(415);
  });
});
