import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  Body,
  type CallHandler,
  Catch,
  Controller,
  type ExecutionContext,
  type INestApplication,
  Injectable,
  type NestInterceptor,
  Post,
  RequestMethod,
  VersioningType,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, BaseExceptionFilter, NestFactory } from '@nestjs/core';
import { map, type Observable } from 'rxjs';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import request from 'supertest';
import { BrokerModule } from '../../src/broker/index.js';
import { BrokerExpressAdapter } from '../../src/express/index.js';
import { PublishBodyReader } from '../../src/broker/publish-body.reader.js';
import { messageOf } from '../../src/message/index.js';
import { TopicQueueService } from '../../src/topic-queue/index.js';
import { brokerApplication, type BrokerApplicationOptions } from '../support/broker-application.js';
import { Gate } from '../support/gate.js';
import { MemoryEngine } from '../support/memory-engine.js';
import { RawHttp } from '../support/raw-http.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

const BODY = '{"topic":"order.created","content":{"amount":1.0}}';
const ACK = '{"acknowledgement":"ACK","topic":"order.created","offset":0}';

@Controller()
class ShopController {
  @Post(['orders', 'shop/messages'])
  create(@Body() order: unknown): unknown {
    return { received: order };
  }
}

let app: INestApplication;
let engine: MemoryEngine;
let newAdapter: () => ExpressAdapter | FastifyAdapter;

async function shop(options: BrokerApplicationOptions = {}): Promise<void> {
  engine = new MemoryEngine();
  const metadata = { controllers: [ShopController], ...options.metadata };
  ({ app } = await brokerApplication({ engine, adapter: newAdapter(), ...options, metadata }));
}

const post = (path: string, body: string | Buffer = BODY): request.Test =>
  request(app.getHttpServer())
    .post(path)
    .set('content-type', 'application/json')
    .serialize((sent: unknown) => sent as string)
    .send(body);

afterEach(async () => {
  await app?.close();
});

const FASTIFY_OPTIONS = { routerOptions: { ignoreTrailingSlash: true, caseSensitive: false } };

const EXPRESS: readonly [string, () => ExpressAdapter][] = [
  ["Nest's Express adapter", () => new ExpressAdapter()],
  ["the broker's Express adapter", () => new BrokerExpressAdapter()],
];

describe.each<[string, () => ExpressAdapter | FastifyAdapter]>([...EXPRESS, ['Fastify', () => new FastifyAdapter(FASTIFY_OPTIONS)]])(
  'A broker inside an application on %s',
  (_platform, adapter) => {
    beforeEach(() => {
      newAdapter = adapter;
    });

    it.each<[string, BrokerApplicationOptions]>([
      ["with Nest's body parsers", {}],
      ['without body parsers', { application: { bodyParser: false } }],
      ['that keeps raw bodies', { application: { rawBody: true } }],
      [
        'with versions in its paths',
        { configure: (each) => void each.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' }) },
      ],
    ])('stores the exact bytes of a publish in an application %s', async (_, options) => {
      await shop(options);
      const answer = await post('/messages');

      expect([answer.status, answer.text]).toEqual([200, ACK]);
      expect(engine.logs.get('order.created')?.payloads[0]?.toString()).toContain('"content":{"amount":1.0},"timestamp":');
    });

    it("leaves the application's own routes to its body parsers, also one that ends in /messages", async () => {
      await shop();

      expect((await post('/orders')).body).toEqual({ received: { topic: 'order.created', content: { amount: 1 } } });
      expect((await post('/shop/messages')).body).toEqual({ received: { topic: 'order.created', content: { amount: 1 } } });
      expect(engine.logs.size).toBe(0);
    });

    it.each<[string, string, BrokerApplicationOptions]>([
      ['a trailing slash', '/messages/', {}],
      ['a query', '/messages?from=shop', {}],
      ['capitals', '/Messages', {}],
      ['a global prefix', '/api/messages', { configure: (each) => void each.setGlobalPrefix('api') }],
      ['a global prefix of two words', '/api/v1/messages/?a=b', { configure: (each) => void each.setGlobalPrefix('/api/v1/') }],
      [
        'a global prefix that leaves it out',
        '/messages',
        { configure: (each) => void each.setGlobalPrefix('api', { exclude: ['messages'] }) },
      ],
      [
        'a global prefix that leaves out POST to it',
        '/messages',
        { configure: (each) => void each.setGlobalPrefix('api', { exclude: [{ path: 'messages', method: RequestMethod.POST }] }) },
      ],
      [
        'a global prefix that leaves out GET to it',
        '/api/messages',
        { configure: (each) => void each.setGlobalPrefix('api', { exclude: [{ path: 'messages', method: RequestMethod.GET }] }) },
      ],
    ])('finds the publish behind %s', async (_, path, options) => {
      await shop(options);

      expect((await post(path)).text).toBe(ACK);
    });

    it('is not found elsewhere', async () => {
      await shop({ configure: (each) => void each.setGlobalPrefix('api') });

      await post('/messages').expect(404);
      await post('/api/messages/1').expect(404);
      await post('/api//messages').expect(404);
      await request(app.getHttpServer()).get('/api/messages').expect(404);
      expect(engine.logs.size).toBe(0);
    });

    it('lets a guard refuse before anything is stored, and keeps no bytes of it', async () => {
      @Injectable()
      class Closed implements CanActivate {
        canActivate(): boolean {
          return false;
        }
      }
      await shop({ metadata: { providers: [{ provide: APP_GUARD, useClass: Closed }] } });

      await post('/messages').expect(403);
      expect(engine.logs.size).toBe(0);
      expect(app.get(PublishBodyReader).pending).toMatchObject({ bytes: 0, count: 0 });
    });

    it('keeps nothing of publishes whose client is gone before a guard has refused them, also of those in line on one connection', async () => {
      const guard = new Gate();
      let asked = 0;
      @Injectable()
      class Slow implements CanActivate {
        async canActivate(): Promise<boolean> {
          asked += 1;
          await guard.opened;
          return false;
        }
      }
      await shop({ metadata: { providers: [{ provide: APP_GUARD, useClass: Slow }] } });
      const { pending } = app.get(PublishBodyReader);
      const http = await RawHttp.to((app.getHttpServer().address() as AddressInfo).port);
      const publish = `POST /messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;
      http.send(publish.repeat(3));
      await until(() => asked === 3);
      expect(pending).toMatchObject({ bytes: 3 * BODY.length, count: 3 });
      http.socket.destroy();

      await until(() => pending.count === 0);
      guard.open();
      expect(pending.bytes).toBe(0);
      await post('/messages').expect(403);
      expect(pending).toMatchObject({ bytes: 0, count: 0 });
    });

    it('lets no interceptor and no filter change an answer', async () => {
      @Injectable()
      class Envelope implements NestInterceptor {
        intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
          return next.handle().pipe(map((data: unknown) => ({ data })));
        }
      }
      @Catch()
      class Apology extends BaseExceptionFilter {}
      await shop({
        metadata: {
          providers: [
            { provide: APP_INTERCEPTOR, useClass: Envelope },
            { provide: APP_FILTER, useClass: Apology },
          ],
        },
      });

      expect((await post('/messages')).text).toBe(ACK);
      expect((await post('/messages', '{}')).body).toEqual({ acknowledgement: 'NACK', field: 'topic', reason: expect.any(String) });
    });
  },
);

describe.each(EXPRESS)('A broker inside an application on %s', (_platform, adapter) => {
  it('stores the exact bytes of a publish in an application with a body parser of its own', async () => {
    await shop({ adapter: adapter(), configure: (each) => each.useBodyParser('text', { type: '*/*' }) });

    expect((await post('/messages')).text).toBe(ACK);
    expect(engine.logs.get('order.created')?.payloads[0]?.toString()).toContain('"content":{"amount":1.0},"timestamp":');
  });

  it('says what to do when a parser in front of it has taken the body', async () => {
    const parsing = adapter();
    parsing.useBodyParser('json', false);
    await shop({ adapter: parsing });

    const answer = await post('/messages');
    expect([answer.status, answer.body]).toEqual([500, { acknowledgement: 'NACK', reason: expect.stringContaining('rawBody: true') }]);
  });

  it('uses the bytes that a parser in front of it has kept', async () => {
    const parsing = adapter();
    parsing.useBodyParser('json', true);
    await shop({ adapter: parsing, broker: { message: { maxBytes: 50_000 } } });

    expect((await post('/messages')).text).toBe(ACK);
    expect(engine.logs.get('order.created')?.payloads[0]?.toString()).toContain('"content":{"amount":1.0},"timestamp":');
    await post('/messages', `{"topic":"order.created","content":"${'x'.repeat(90_000)}"}`).expect(413);
  });
});

describe('BrokerModule', () => {
  const directory = temporaryDirectories();

  it('refuses the start when it is imported without forRoot', async () => {
    const starting = NestFactory.create(BrokerModule, { logger: false, abortOnError: false });
    await expect(starting).rejects.toMatchObject({
      code: 'MMMQ_INVALID_SETTINGS',
      message: expect.stringContaining('import BrokerModule.forRoot()'),
    });
  });

  it('takes its options from a factory', async () => {
    const rootDir = await directory();
    const imported = BrokerModule.forRootAsync({ useFactory: async () => ({ storage: { rootDir } }) });
    app = await NestFactory.create(imported, { logger: false, abortOnError: false });
    await app.init();

    expect((await post('/messages')).text).toBe(ACK);
  });

  it('refuses wrong options by name', () => {
    expect(() => BrokerModule.forRoot({ message: { maxBytes: -1 } })).toThrow(/message\.maxBytes/);
  });

  it('works in an application without HTTP', async () => {
    const context = await NestFactory.createApplicationContext(BrokerModule.forRoot({ storage: { rootDir: await directory() } }), {
      logger: false,
    });
    const answer = await context.get(TopicQueueService).append(messageOf({ topic: 'order.created', content: { amount: 1 } }));

    expect(answer).toEqual({ topic: 'order.created', offset: 0 });
    await context.close();
  });
});
