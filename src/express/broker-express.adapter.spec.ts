import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestApplicationOptions,
  Param,
  Post,
  Redirect,
  Req,
  Res,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import request from 'supertest';
import { BrokerExpressAdapter } from './broker-express.adapter.js';

type Seen = Record<string, unknown>;
let seen: Seen | undefined;

@Injectable()
class Door implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const asked = context.switchToHttp().getRequest<IncomingMessage & Seen>();
    const { originalUrl, baseUrl, params, route, res, url } = asked;
    seen = { originalUrl, baseUrl, params, path: (route as { path: string }).path, locals: (res as Seen)['locals'], url };
    return asked.headers['x-refuse'] === undefined;
  }
}

@Controller('messages')
class MessagesController {
  @Post()
  @UseGuards(Door)
  publish(@Req() asked: IncomingMessage, @Res() response: ServerResponse): void {
    let bytes = 0;
    asked.on('data', (chunk: Buffer) => (bytes += chunk.length)).on('end', () => response.end(`published ${bytes}`));
  }
}

@Controller()
class ShopController {
  @Get('orders/:id')
  order(@Param('id') id: string): object {
    return { id };
  }

  @Get('old')
  @Redirect('/new')
  old(): void {}

  @Get('broken')
  broken(): never {
    throw new Error('it broke');
  }
}

@Controller()
class CatchAllController {
  @Post(':any')
  any(): string {
    return 'caught';
  }
}

const passable = (_request: IncomingMessage, _response: ServerResponse, next: () => void): void => next();

let app: NestExpressApplication;
let adapter: BrokerExpressAdapter;
let expressWay: ReturnType<typeof jest.spyOn>;

interface Setting {
  readonly controllers?: readonly Type[];
  readonly options?: NestApplicationOptions;
  readonly configure?: () => void;
  readonly middleware?: (consumer: MiddlewareConsumer) => void;
}

async function start({
  controllers = [MessagesController, ShopController],
  options = {},
  configure,
  middleware,
}: Setting = {}): Promise<void> {
  @Module({ controllers: [...controllers] })
  class ShopModule {
    configure(consumer: MiddlewareConsumer): void {
      middleware?.(consumer);
    }
  }
  adapter = new BrokerExpressAdapter();
  app = await NestFactory.create<NestExpressApplication>(ShopModule, adapter, { logger: false, ...options });
  app.disable('x-powered-by');
  app.use(passable);
  adapter.serveDirectly('POST', '/messages', passable);
  configure?.();
  await app.listen(0, '127.0.0.1');
  expressWay = jest.spyOn((adapter.getInstance() as { router: { handle: () => void } }).router, 'handle');
}

const port = (): number => (app.getHttpServer().address() as AddressInfo).port;
const publish = (path = '/messages'): request.Test =>
  request(app.getHttpServer()).post(path).set('content-type', 'application/json').send('{}');
const tookExpressWay = (): boolean => expressWay.mock.calls.length > 0;

afterEach(async () => {
  seen = undefined;
  await (app as INestApplication | undefined)?.close();
});

describe('a direct route', () => {
  it('takes the short way, past body parsers, and its guard and handler find what Express would have given them', async () => {
    await start();
    const direct = await publish().expect(201);
    expect([direct.text, tookExpressWay()]).toEqual(['published 2', false]);
    const seenDirectly = seen;

    await app.close();

    await start({ configure: () => app.use('/messages', passableTwin), options: { bodyParser: false } });
    await publish().expect(201);
    expect(tookExpressWay()).toBe(true);
    expect(seenDirectly).toEqual(seen);
  });

  it('is refused by a guard', async () => {
    await start();
    const refused = await publish().set('x-refuse', 'yes');
    expect([refused.status, tookExpressWay()]).toEqual([403, false]);
  });

  it.each<[string, Setting]>([
    ['middleware for another path', { configure: () => app.use('/orders', passableTwin) }],
    ['middleware of a module for another route', { middleware: (consumer) => consumer.apply(passableTwin).forRoutes('orders') }],
    ['a handler of errors', { configure: () => app.use((_e: unknown, _q: unknown, _r: unknown, next: () => void) => next()) }],
    ['a route of another method', { controllers: [GetMessagesControllerOf(), MessagesController] }],
  ])('stays direct with %s', async (_, setting) => {
    await start(setting);
    await publish().expect(201);
    expect(tookExpressWay()).toBe(false);
  });

  it.each<[string, Setting]>([
    ['CORS', { configure: () => app.enableCors() }],
    ['middleware for all paths', { configure: () => app.use(passableTwin) }],
    ['middleware for its path', { configure: () => app.use('/messages', passableTwin) }],
    ['middleware of a module', { middleware: (consumer) => consumer.apply(passableTwin).forRoutes('*path') }],
    ['a hook of requests', { configure: () => adapter.setOnRequestHook((_q: unknown, _r: unknown, done: () => void) => done()) }],
    ['a hook of responses', { configure: () => adapter.setOnResponseHook(() => undefined) }],
    ['x-powered-by', { configure: () => void app.enable('x-powered-by') }],
    ['return503OnClosing', { options: { return503OnClosing: true } }],
  ])("goes Express's way where the application has %s", async (_, setting) => {
    await start({ ...setting, options: { bodyParser: false, ...setting.options } });
    await publish().expect(201);
    expect(tookExpressWay()).toBe(true);
  });

  it("goes Express's way where another route comes first", async () => {
    await start({ controllers: [CatchAllController, MessagesController], options: { bodyParser: false } });
    expect([(await publish()).text, tookExpressWay()]).toEqual(['caught', true]);
  });

  it.each(['/messages?from=shop', '/messages/', '/Messages'])("goes Express's way as %s", async (path) => {
    await start({ options: { bodyParser: false } });
    await publish(path).expect(201);
    expect(tookExpressWay()).toBe(true);
  });

  it('sees middleware that comes later', async () => {
    await start({ options: { bodyParser: false } });
    await publish().expect(201);
    expect(tookExpressWay()).toBe(false);
    // In front of the routes, where only a look into the router itself can put it.
    const { stack } = (adapter.getInstance() as { router: { stack: unknown[] } }).router;
    app.use(passableTwin);
    stack.unshift(stack.pop());
    await publish().expect(201);
    expect(tookExpressWay()).toBe(true);
  });
});

describe('the adapter', () => {
  it('serves everything else as the one of Nest does', async () => {
    await start();
    const server = app.getHttpServer();
    expect((await request(server).get('/orders/7')).body).toEqual({ id: '7' });
    expect((await request(server).get('/old')).headers['location']).toBe('/new');
    expect((await request(server).get('/broken')).status).toBe(500);
    expect((await request(server).get('/nowhere')).body).toMatchObject({ statusCode: 404 });
    await request(server).put('/messages').expect(404);
  });

  it('makes requests and responses with the prototypes that Express would give them', async () => {
    await start();
    const born: unknown[] = [];
    app.getHttpServer().prependListener('request', (asked: object, response: object) => {
      born.push(Object.getPrototypeOf(asked), Object.getPrototypeOf(response));
    });
    await request(app.getHttpServer()).get('/orders/7').expect(200);
    const { request: requests, response: responses } = adapter.getInstance() as { request: object; response: object };
    expect(born[0]).toBe(requests);
    expect(born[1]).toBe(responses);
  });

  it('serves https', async () => {
    const key = Buffer.alloc(16, 7);
    const psk = { ciphers: 'PSK', maxVersion: 'TLSv1.2' as const };
    await start({ options: { httpsOptions: { ...psk, pskCallback: () => key } as never } });
    const text = await new Promise<string>((resolve, reject) => {
      const checkServerIdentity = (): undefined => undefined;
      const options = { ...psk, pskCallback: () => ({ psk: key, identity: 'x' }), checkServerIdentity, agent: false };
      httpsRequest({ host: '127.0.0.1', port: port(), path: '/messages', method: 'POST', ...options }, (answer) => {
        answer.setEncoding('utf8').on('data', resolve);
      })
        .on('error', reject)
        .end('1234');
    });
    expect([text, tookExpressWay()]).toEqual(['published 4', false]);
  });

  it('closes connections that are open at the end when it is told to', async () => {
    await start({ options: { forceCloseConnections: true } });
    const socket = connect(port(), '127.0.0.1');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await new Promise((resolve) => socket.once('connect', resolve));
    // It has been seen by the server once it has answered on another connection.
    await new Promise((resolve) => httpRequest({ port: port(), path: '/orders/7', agent: false }, resolve).end());
    await app.close();
    await closed;
  });
});

/** Does nothing, and is not the one that may be passed. */
function passableTwin(_request: unknown, _response: unknown, next: () => void): void {
  next();
}

function GetMessagesControllerOf(): Type {
  @Controller('messages')
  class GetMessagesController {
    @Get()
    list(): string {
      return 'messages';
    }
  }
  return GetMessagesController;
}
