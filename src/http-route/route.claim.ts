import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpServer, OnModuleInit } from '@nestjs/common';
import type { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';
import { ErrorCode, MmmqError } from '../core/index.js';
import type { BodyReader, BodyRule } from './body.reader.js';
import { claimFastifyRoutes, type FastifyInstance } from './fastify-route.claim.js';
import { BATCH_PATH, RoutePaths } from './route-paths.js';

/** `path` as Express gives it: what it routes by, without the query. */
type RoutedRequest = IncomingMessage & { readonly path: string };

/** Who serves a path, by the application: its adapter host is there once. */
const served = new WeakMap<HttpAdapterHost, Map<string, string>>();

/**
 * Claims the bodies of a route and its batch route before any body parser of the application gets hold of them: a parser would decode, repair
 * and re-spell what has to be kept byte for byte.
 *
 * Nest adds its parsers when the application is initialised, and the routes after them. This provider is made earlier, so a middleware that
 * it adds to the adapter comes before the parsers, and a hook hears of the routes. The global prefix may be set later still and is looked up with
 * the first request.
 */
export class RouteClaim implements OnModuleInit {
  private readonly paths: RoutePaths;
  private rules: ReadonlyMap<string, BodyRule> | undefined;

  /**
   * @param path of the first route, without a slash in front
   * @throws {MmmqError} when another module of the application serves it, or the same one imported once more
   */
  constructor(
    private readonly host: HttpAdapterHost,
    config: ApplicationConfig,
    private readonly bodies: BodyReader,
    path: string,
  ) {
    refuseServedPaths(host, path, bodies.words.module);
    this.paths = new RoutePaths(config, path);
    // In a test module the adapter comes after the providers are made; without HTTP it never comes.
    host.init$.subscribe(() => {
      if (this.isOn('express')) host.httpAdapter.use(this.handle);
      if (this.isOn('fastify')) claimFastifyRoutes(host.httpAdapter.getInstance<FastifyInstance>(), this.paths, bodies);
    });
  }

  /** @throws {MmmqError} on a platform that is neither Express nor Fastify */
  onModuleInit(): void {
    if (isWithoutHttp(this.host)) return;
    const adapter: unknown = this.host.httpAdapter;
    if (isServingDirectly(adapter)) {
      for (const path of [this.paths.single, this.paths.batch]) adapter.serveDirectly('POST', path, this.handle);
    }
    if (this.isOn('express') || this.isOn('fastify')) return;
    const { module, many } = this.bodies.words;
    throw new MmmqError(
      ErrorCode.INVALID_SETTINGS,
      `${module} reads ${many} on Express and Fastify, and this application runs on ${this.host.httpAdapter.getType()}: ` +
        'create it with @nestjs/platform-express or @nestjs/platform-fastify',
    );
  }

  private isOn(platform: 'express' | 'fastify'): boolean {
    return !isWithoutHttp(this.host) && this.host.httpAdapter.getType() === platform;
  }

  private readonly handle = (request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    const rule = request.method === 'POST' ? this.ruleOf((request as RoutedRequest).path) : undefined;
    if (rule === undefined) next();
    else this.bodies.claim(request, response, rule, next);
  };

  private ruleOf(path: string): BodyRule | undefined {
    const adapter: HttpServer = this.host.httpAdapter;
    const { caseSensitive = false, ignoreTrailingSlash = true } = adapter.getRouteMatchingOptions?.() ?? {};
    const slashless = ignoreTrailingSlash && path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
    this.rules ??= new Map([
      ...spellingsOf(this.paths.single, caseSensitive).map((spelling) => [spelling, this.bodies.single] as const),
      ...spellingsOf(this.paths.batch, caseSensitive).map((spelling) => [spelling, this.bodies.batch] as const),
    ]);
    return this.rules.get(slashless) ?? (caseSensitive ? undefined : this.rules.get(slashless.toLowerCase()));
  }
}

function isWithoutHttp(host: HttpAdapterHost): boolean {
  return (host.httpAdapter as HttpServer | null | undefined) == null;
}

/** Of two routes on one path the second would never be asked, or the platform would refuse the start without a word about the remedy. */
function refuseServedPaths(host: HttpAdapterHost, path: string, module: string): void {
  const owners = served.get(host) ?? new Map<string, string>();
  served.set(host, owners);
  for (const each of [path, `${path}/${BATCH_PATH}`]) {
    const owner = owners.get(each.toLowerCase());
    // Without HTTP nothing is served, and there may be several brokers.
    if (owner === module && !isWithoutHttp(host)) {
      throw new MmmqError(
        ErrorCode.INVALID_SETTINGS,
        `${module} is imported twice, and POST /${each} can be served once in an application: import it in one module, the root module, only`,
      );
    }
    if (owner !== undefined && owner !== module) {
      throw new MmmqError(
        ErrorCode.INVALID_SETTINGS,
        `${[owner, module].sort().join(' and ')} both serve POST /${each} in this application: give the consumer a path of its own, as in ` +
          `ConsumerModule.forRoot({ path: '/consumer/messages' }), and its dispatchers the host that goes with it, as in http://localhost:3000/consumer`,
      );
    }
    owners.set(each.toLowerCase(), module);
  }
}

function spellingsOf(path: string, isCaseSensitive: boolean): string[] {
  return isCaseSensitive ? [path] : [path, path.toLowerCase()];
}

/** The part of `BrokerExpressAdapter` that is of use here: served directly, no body parser comes before the controller, and nothing needs a claim. */
interface DirectlyServing {
  serveDirectly(
    method: string,
    url: string,
    passable: (request: IncomingMessage, response: ServerResponse, next: () => void) => void,
  ): void;
}

function isServingDirectly(adapter: unknown): adapter is DirectlyServing {
  return typeof adapter === 'object' && adapter !== null && 'serveDirectly' in adapter;
}
