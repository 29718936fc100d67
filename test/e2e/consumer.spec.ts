import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExecutionContext,
  Inject,
  Injectable,
  type INestApplication,
  Module,
  type NestInterceptor,
  Post,
  Scope,
  ValidationPipe,
} from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR, APP_PIPE, BaseExceptionFilter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { defer, EMPTY, from, map, type Observable, throwError } from 'rxjs';
import request from 'supertest';
import { ConsumerModule, type MessageContext, MessageListener } from '../../src/consumer/index.js';
import { DeliveryBodyReader } from '../../src/consumer/delivery-body.reader.js';
import { BrokerExpressAdapter } from '../../src/express/index.js';
import { BrokerModule } from '../../src/index.js';
import {
  consumerApplication,
  type ConsumerApplicationOptions,
  deliveryHeaders,
  storedMessage,
  type TestDelivery,
} from '../support/consumer-application.js';
import { brokerApplication } from '../support/broker-application.js';
import { Gate } from '../support/gate.js';
import { MemoryEngine } from '../support/memory-engine.js';
import { RawHttp } from '../support/raw-http.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

const ACK = '{"acknowledgement":"ACK"}';
const MIB = 1024 * 1024;

@Injectable()
class Orders {
  readonly handled: [unknown, MessageContext][] = [];
  gate: Gate | undefined;

  @MessageListener('order.**')
  async onOrder(content: unknown, context: MessageContext): Promise<void> {
    this.handled.push([content, context]);
    await this.gate?.opened;
  }
}

@Controller('orders')
class OrdersController {
  @Post()
  create(@Body() order: unknown): unknown {
    return { received: order };
  }

  @MessageListener('mail.*', { raw: true })
  onMail(content: Buffer): void {
    if (content.toString() === '"broken"') throw new Error('broken mail');
  }
}

class Work {
  readonly done: string[] = [];

  @MessageListener('work.do')
  do(content: string): unknown {
    const working = async (): Promise<void> => {
      await Promise.resolve();
      this.done.push(content);
    };
    if (content === 'observed') return defer(() => from(working()));
    if (content === 'failing') return throwError(() => new Error('no luck'));
    return content === 'empty' ? EMPTY : working();
  }
}

let app: INestApplication;
let port: number;
let newAdapter: () => ExpressAdapter | FastifyAdapter;

async function open(options: ConsumerApplicationOptions = {}): Promise<Orders> {
  const { metadata = {} } = options;
  const all = { controllers: [OrdersController], ...metadata, providers: [Orders, ...(metadata.providers ?? [])] };
  ({ app, port } = await consumerApplication({ adapter: newAdapter(), ...options, metadata: all }));
  return app.get(Orders);
}

const post = (path: string, body: string, delivery: TestDelivery = {}, headers: object = {}): request.Test =>
  request(app.getHttpServer())
    .post(path)
    .set({ ...deliveryHeaders(delivery), ...headers })
    .serialize((sent: unknown) => sent as string)
    .send(body);

afterEach(async () => {
  await app?.close();
});

describe.each<[string, () => ExpressAdapter | FastifyAdapter]>([
  ["Nest's Express adapter", () => new ExpressAdapter()],
  ["the broker's Express adapter", () => new BrokerExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('A consumer inside an application on %s', (_platform, adapter) => {
  beforeEach(() => {
    newAdapter = adapter;
  });

  it('hands messages to the listeners of providers and controllers, and answers for them', async () => {
    const orders = await open();
    const answer = await post('/messages', storedMessage({ amount: 1 }), { offset: 41 });
    expect([answer.status, answer.text, answer.headers['content-type']]).toEqual([200, ACK, 'application/json']);
    expect(orders.handled).toMatchObject([[{ amount: 1 }, { topic: 'order.created', offset: 41 }]]);
    expect((await post('/messages', storedMessage('broken'), { topic: 'mail.sent' })).text).toBe(
      '{"acknowledgement":"NACK","reason":"broken mail"}',
    );
    expect((await post('/messages/batch', `[${storedMessage(1)},${storedMessage(2)}]`, { count: 2 })).text).toBe(`[${ACK},${ACK}]`);
    expect((await post('/messages', storedMessage(1), { topic: 'other' })).body).toMatchObject({ acknowledgement: 'NACK', retry: false });
  });

  it('waits for what a listener returns to complete, a promise or an Observable', async () => {
    const work = new Work();
    await open({ metadata: { providers: [{ provide: Work, useValue: work }] } });
    const deliver = async (content: string): Promise<unknown> =>
      JSON.parse((await post('/messages', storedMessage(content), { topic: 'work.do' })).text);
    expect(await deliver('promised')).toEqual({ acknowledgement: 'ACK' });
    expect(await deliver('observed')).toEqual({ acknowledgement: 'ACK' });
    expect(work.done).toEqual(['promised', 'observed']);
    expect(await deliver('empty')).toEqual({ acknowledgement: 'ACK' });
    expect(await deliver('failing')).toEqual({ acknowledgement: 'NACK', reason: 'no luck' });
    Object.assign(work, { do: undefined });
    expect(await deliver('promised')).toMatchObject({ acknowledgement: 'NACK' });
  });

  it('takes bodies that are larger than the parsers of the application allow, and leaves its own routes to them', async () => {
    const orders = await open();
    const content = 'x'.repeat(2 * MIB);
    expect((await post('/messages', storedMessage(content))).text).toBe(ACK);
    expect(orders.handled[0]?.[0]).toBe(content);
    expect((await post('/orders', '{"amount":1.0}')).body).toEqual({ received: { amount: 1 } });
    expect((await post('/orders', JSON.stringify({ content }))).status).toBe(413);
  });

  it.each<[string, string, ConsumerApplicationOptions]>([
    ['behind a global prefix', '/api/messages', { configure: (each) => void each.setGlobalPrefix('api') }],
    ['on a path of its own', '/consumer/messages', { consumer: { path: '/consumer/messages' } }],
    [
      'on a path of its own behind a prefix',
      '/api/v1/consumer/messages',
      { consumer: { path: '/consumer/messages' }, configure: (each) => void each.setGlobalPrefix('api/v1') },
    ],
  ])('is found %s', async (_, path, options) => {
    await open(options);
    const large = storedMessage('x'.repeat(MIB));
    expect((await post(path, large)).text).toBe(ACK);
    expect((await post(`${path}/batch`, `[${large}]`, { count: 1 })).text).toBe(`[${ACK}]`);
    expect((await post('/elsewhere', storedMessage(1))).status).toBe(404);
  });

  it('refuses what is no delivery, in its own words', async () => {
    await open({ consumer: { maxBodyBytes: 1000 } });
    expect((await post('/messages', '{}', {}, { 'content-type': 'text/plain' })).body).toMatchObject({ field: 'content-type' });
    const large = await post('/messages', storedMessage('x'.repeat(1000)));
    expect([large.status, large.body]).toEqual([
      413,
      { acknowledgement: 'NACK', reason: 'the body is larger than the option maxBodyBytes of ConsumerModule, which is 1000' },
    ]);
    expect((await post('/messages', '{}')).body).toMatchObject({ acknowledgement: 'NACK', field: 'content' });
    const stranger = await request(app.getHttpServer()).post('/messages').send({ topic: 'order.created', content: 1 });
    expect([stranger.status, stranger.body]).toMatchObject([400, { field: 'mmmq-dispatcher' }]);
    expect(app.get(DeliveryBodyReader).pending).toMatchObject({ bytes: 0, count: 0 });
  });

  it('lets no pipe, interceptor or filter of the application change what comes or what is answered', async () => {
    @Injectable()
    class Envelope implements NestInterceptor {
      intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
        return next.handle().pipe(map((data: unknown) => ({ data })));
      }
    }
    @Catch()
    class Apology extends BaseExceptionFilter {}
    const orders = await open({
      metadata: {
        providers: [
          { provide: APP_PIPE, useValue: new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true }) },
          { provide: APP_INTERCEPTOR, useClass: Envelope },
          { provide: APP_FILTER, useClass: Apology },
        ],
      },
      configure: (each) => void each.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true })),
    });
    expect((await post('/messages', storedMessage({ amount: 1 }))).text).toBe(ACK);
    expect(orders.handled[0]?.[0]).toEqual({ amount: 1 });
    expect((await post('/messages', '{}')).body).toMatchObject({ acknowledgement: 'NACK' });
  });

  it('lets its guards refuse before anything is handed over, with what their module gives them', async () => {
    @Injectable()
    class Password {
      readonly text = 'sesame';
    }
    @Module({ providers: [Password], exports: [Password] })
    class PasswordModule {}
    @Injectable()
    class Door implements CanActivate {
      constructor(@Inject(Password) private readonly password: Password) {}

      canActivate(context: ExecutionContext): boolean {
        return context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-password'] === this.password.text;
      }
    }
    const orders = await open({ consumer: { guards: [Door], imports: [PasswordModule] } });
    for (const path of ['/messages', '/messages/batch']) expect((await post(path, storedMessage(1))).status).toBe(403);
    expect(orders.handled).toEqual([]);
    expect((await post('/messages', storedMessage(1), {}, { 'x-password': 'sesame' })).text).toBe(ACK);
    expect((await post('/orders', '{}')).status).toBe(201);
    expect(app.get(DeliveryBodyReader).pending).toMatchObject({ bytes: 0, count: 0 });
  });

  it('tells a listener that its dispatcher is gone, and begins nothing that nobody waits for', async () => {
    const orders = await open({ consumer: { concurrency: 1 } });
    orders.gate = new Gate();
    const body = storedMessage(1);
    const head = Object.entries(deliveryHeaders()).map(([name, value]) => `${name}: ${value}\r\n`);
    const send = async (): Promise<RawHttp> => {
      const http = await RawHttp.to(port);
      http.send(`POST /messages HTTP/1.1\r\nhost: x\r\n${head.join('')}content-length: ${body.length}\r\n\r\n${body}`);
      return http;
    };
    const { pending } = app.get(DeliveryBodyReader);
    const first = await send();
    await until(() => orders.handled.length === 1);
    const second = await send();
    await until(() => pending.count === 2);
    second.socket.destroy();
    await until(() => pending.count === 1);
    first.socket.destroy();
    await until(() => orders.handled[0]?.[1].signal.aborted === true);
    orders.gate.open();
    await until(() => pending.count === 0);
    expect(orders.handled).toHaveLength(1);
  });

  it('tells all listeners of requests that stand in line on one connection when it is gone', async () => {
    const orders = await open();
    orders.gate = new Gate();
    const body = storedMessage(1);
    const head = Object.entries(deliveryHeaders()).map(([name, value]) => `${name}: ${value}\r\n`);
    const http = await RawHttp.to(port);
    http.send(`POST /messages HTTP/1.1\r\nhost: x\r\n${head.join('')}content-length: ${body.length}\r\n\r\n${body}`.repeat(2));
    await until(() => orders.handled.length === 2);
    http.socket.destroy();
    await until(() => orders.handled.every(([, { signal }]) => signal.aborted));
    orders.gate.open();
    await until(() => app.get(DeliveryBodyReader).pending.count === 0);
  });

  it('lets a broker live beside it on another path', async () => {
    const engine = new MemoryEngine();
    const imports = [ConsumerModule.forRoot({ path: '/consumer/messages' })];
    ({ app } = await brokerApplication({ engine, adapter: adapter(), metadata: { imports, providers: [Orders] } }));
    const published = await request(app.getHttpServer()).post('/messages').send({ topic: 'order.created', content: 1 });
    expect(published.body).toEqual({ acknowledgement: 'ACK', topic: 'order.created', offset: 0 });
    expect((await post('/consumer/messages', storedMessage(1))).text).toBe(ACK);
  });
});

describe('The start of a consumer', () => {
  const newDirectory = temporaryDirectories();
  const starting = async (metadata: object): Promise<unknown> => {
    @Module(metadata)
    class AppModule {}
    const created = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
    try {
      return await created.init();
    } finally {
      await created.close();
    }
  };
  const INVALID = 'MMMQ_INVALID_SETTINGS';

  it('is refused where a broker of the application has its path, and names the option to change', async () => {
    const rootDir = await newDirectory();
    const imports = [BrokerModule.forRoot({ storage: { rootDir } }), ConsumerModule.forRoot()];
    await expect(starting({ imports })).rejects.toMatchObject({
      code: INVALID,
      message: expect.stringMatching(/BrokerModule and ConsumerModule both serve POST \/messages .*ConsumerModule\.forRoot\(\{ path: /),
    });
  });

  it('is refused where two listeners match one topic, and names both', async () => {
    @Injectable()
    class Audit {
      @MessageListener('*.created')
      onCreated(): void {}
    }
    @Injectable()
    class Mails {
      @MessageListener('order.*')
      onOrder(): void {}
    }
    await expect(starting({ imports: [ConsumerModule.forRoot()], providers: [Audit, Mails] })).rejects.toMatchObject({
      code: INVALID,
      message: expect.stringMatching(/Audit\.onCreated .*Mails\.onOrder .*order\.created/),
    });
  });

  it.each([Scope.REQUEST, Scope.TRANSIENT])('is refused for a listener on a provider of scope %p', async (scope) => {
    @Injectable({ scope })
    class Scoped {
      @MessageListener('order.*')
      onOrder(): void {}
    }
    @Injectable()
    class User {
      constructor(@Inject(Scoped) readonly scoped: Scoped) {}
    }
    const providers = scope === Scope.TRANSIENT ? [Scoped, User] : [Scoped];
    await expect(starting({ imports: [ConsumerModule.forRoot()], providers })).rejects.toMatchObject({
      code: INVALID,
      message: expect.stringMatching(/Scoped\.onOrder is a @MessageListener.*singletons/),
    });
  });

  it('is refused when it is imported without forRoot', async () => {
    await expect(starting({ imports: [ConsumerModule] })).rejects.toMatchObject({
      code: INVALID,
      message: expect.stringContaining('import ConsumerModule.forRoot()'),
    });
  });

  it('calls an object that has several tokens once, and takes its options from a factory', async () => {
    const made = new Orders();
    const imports = [ConsumerModule.forRootAsync({ inject: [Orders], imports: [], useFactory: () => ({ concurrency: 3 }) })];
    await expect(starting({ imports })).rejects.toThrow(/Nest can't resolve/);
    @Module({
      imports: [ConsumerModule.forRootAsync({ path: '/in', useFactory: async () => ({ noListener: 'acknowledge' as const }) })],
      providers: [
        { provide: Orders, useValue: made },
        { provide: 'alias', useExisting: Orders },
        { provide: 'nothing', useValue: null },
        { provide: 'text', useValue: 'text' },
        { provide: 'bare', useValue: Object.create(null) as object },
      ],
    })
    class AppModule {}
    app = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
    await app.init();
    expect((await post('/in', storedMessage(1))).text).toBe(ACK);
    expect((await post('/in', storedMessage(1), { topic: 'other' })).text).toBe(ACK);
    expect(made.handled).toHaveLength(1);
  });

  it('works in an application without HTTP', async () => {
    const context = await NestFactory.createApplicationContext(ConsumerModule.forRoot(), { logger: false });
    await context.close();
  });
});
