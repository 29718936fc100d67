import { createServer, IncomingMessage, ServerResponse, type Server } from 'node:http';
import type { NestApplicationOptions } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { DirectRoute, type RequestHandler, type RoutingApp } from './direct-route.js';

/** What this adapter uses of an Express application; `request` and `response` are the prototypes that it gives to each of them. */
interface ExpressApp extends RoutingApp {
  request: object;
  response: object;
}

/** What Express adds to a request and its response before anybody sees them. */
type ExpressRequest = IncomingMessage & { res?: ServerResponse; originalUrl?: string; baseUrl?: string; params?: object; route?: unknown };
type ExpressResponse = ServerResponse & { locals?: object };

/**
 * Nest's Express adapter without what Express costs per request.
 *
 *     const app = await NestFactory.create(AppModule, new BrokerExpressAdapter());
 *
 * - Express exchanges the prototypes of each request and response when it gets hold of them, and V8 then treats both as objects without a
 *   known shape for the rest of their lives: that costs more than all that Nest and a publish do with them. Here the server makes them with
 *   those prototypes, so that Express has nothing to exchange.
 * - A publish goes straight to its controller, past Express's walk through all that is registered, where the application has nothing
 *   standing in front of it: no middleware for its path (CORS, an access log), no request hook, no `x-powered-by`. Otherwise it takes
 *   Express's way, through all of them in their order. Guards apply both ways.
 *
 * Everything else is as with Nest's own adapter, `https`, `return503OnClosing` and `forceCloseConnections` included.
 */
export class BrokerExpressAdapter extends ExpressAdapter {
  private readonly app: ExpressApp = this.getInstance();
  private readonly directRoutes = new Map<string, DirectRoute>();
  private readonly passable = new Set<RequestHandler>();
  private isHooked = false;
  private isClosedByForce = false;

  /** @param instance an Express application, where it is not to be a new one */
  constructor(instance?: unknown) {
    super(instance);
    // Nest's own, the last one so far: it calls the hooks, where there are any.
    this.letPass(this.app.router.stack.slice(-1));
  }

  /**
   * Lets requests of this method and exactly this URL take the short way wherever that makes no difference.
   * @param passable middleware that has nothing to do for a request that takes it
   */
  serveDirectly(method: string, url: string, passable: RequestHandler): void {
    this.passable.add(passable);
    this.directRoutes.set(`${method} ${url}`, new DirectRoute(this.app, method, url, this.passable));
  }

  override initHttpServer(options: NestApplicationOptions): void {
    const classes = classesOf(this.app);
    if (options.httpsOptions !== undefined) {
      super.initHttpServer({ ...options, httpsOptions: { ...options.httpsOptions, ...classes } });
    } else {
      super.initHttpServer(options);
      // The one that Nest has made was given to nobody yet; its own list of connections, though, is about that one.
      this.httpServer = createServer(classes);
      this.isClosedByForce = options.forceCloseConnections ?? false;
    }
    const server: Server = this.httpServer;
    server.removeAllListeners('request').on('request', (request, response) => this.serve(request, response));
  }

  /** A publish is not parsed: its controller reads the bytes. */
  override registerParserMiddleware(prefix?: string, rawBody?: boolean): void {
    const { length } = this.app.router.stack;
    super.registerParserMiddleware(prefix, rawBody);
    this.letPass(this.app.router.stack.slice(length));
  }

  override setOnRequestHook(...args: Parameters<ExpressAdapter['setOnRequestHook']>): void {
    super.setOnRequestHook(...args);
    this.isHooked = true;
  }

  override setOnResponseHook(...args: Parameters<ExpressAdapter['setOnResponseHook']>): void {
    super.setOnResponseHook(...args);
    this.isHooked = true;
  }

  override close(): Promise<void> | undefined {
    const server: Server | undefined = this.httpServer;
    const closed = super.close() as Promise<void> | undefined;
    if (this.isClosedByForce) server?.closeAllConnections();
    return closed;
  }

  private letPass(layers: readonly { readonly handle: RequestHandler }[]): void {
    for (const { handle } of layers) this.passable.add(handle);
  }

  private serve(request: ExpressRequest, response: ExpressResponse): void {
    const target = this.isHooked ? undefined : this.directRoutes.get(`${request.method} ${request.url}`)?.target();
    if (target === undefined) {
      this.app(request, response);
      return;
    }
    request.res = response;
    request.originalUrl = request.url ?? '';
    request.baseUrl = '';
    request.params = {};
    request.route = target.route;
    response.locals = {};
    target.handle(request, response, () => this.app(request, response));
  }
}

/** The classes for `createServer`, whose prototypes are what Express would put in their place. Real classes: V8 makes their objects fastest. */
function classesOf(app: ExpressApp): { IncomingMessage: typeof IncomingMessage; ServerResponse: typeof ServerResponse } {
  class ExpressRequest extends IncomingMessage {}
  class ExpressResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {}
  Object.setPrototypeOf(ExpressRequest.prototype, app.request);
  Object.setPrototypeOf(ExpressResponse.prototype, app.response);
  app.request = ExpressRequest.prototype;
  app.response = ExpressResponse.prototype;
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse };
}
