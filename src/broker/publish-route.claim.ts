import type { IncomingMessage, ServerResponse } from 'node:http';
import { type HttpServer, Inject, Injectable, type OnModuleInit, RequestMethod } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';
import { ErrorCode, MmmqError } from '../core/index.js';
import { type BodyRule, PublishBodyReader } from './publish-body.reader.js';

export const PUBLISH_PATH = 'messages';
/** Below {@link PUBLISH_PATH}. */
export const BATCH_PATH = 'batch';

/** `path` as Express gives it: what it routes by, without the query. */
type RoutedRequest = IncomingMessage & { readonly path: string };

/**
 * Claims the bodies of publishes before any body parser of the application gets hold of them: a parser would decode, repair and re-spell
 * what has to be stored byte for byte.
 *
 * Nest adds its parsers when the application is initialised, and the routes after them. This provider is made earlier, so a middleware that
 * it adds to the adapter comes before the parsers. The global prefix may be set later still and is looked up with the first request.
 */
@Injectable()
export class PublishRouteClaim implements OnModuleInit {
  private rules: ReadonlyMap<string, BodyRule> | undefined;

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(ApplicationConfig) private readonly config: ApplicationConfig,
    @Inject(PublishBodyReader) private readonly bodies: PublishBodyReader,
  ) {
    // In a test module the adapter comes after the providers are made; without HTTP it never comes.
    host.init$.subscribe(() => {
      if (this.isExpress()) host.httpAdapter.use(this.handle);
    });
  }

  /** @throws {MmmqError} on another platform than Express */
  onModuleInit(): void {
    if (this.isWithoutHttp()) return;
    const adapter: unknown = this.host.httpAdapter;
    if (isServingDirectly(adapter)) {
      for (const path of [PUBLISH_PATH, `${PUBLISH_PATH}/${BATCH_PATH}`]) adapter.serveDirectly('POST', this.prefixed(path), this.handle);
    }
    if (this.isExpress()) return;
    throw new MmmqError(
      ErrorCode.INVALID_SETTINGS,
      `BrokerModule reads publishes on Express only, and this application runs on ${this.host.httpAdapter.getType()}: create it with @nestjs/platform-express`,
    );
  }

  private isWithoutHttp(): boolean {
    return (this.host.httpAdapter as HttpServer | null | undefined) == null;
  }

  private isExpress(): boolean {
    return !this.isWithoutHttp() && this.host.httpAdapter.getType() === 'express';
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
      ...this.spellingsOf(PUBLISH_PATH, caseSensitive).map((spelling) => [spelling, this.bodies.single] as const),
      ...this.spellingsOf(`${PUBLISH_PATH}/${BATCH_PATH}`, caseSensitive).map((spelling) => [spelling, this.bodies.batch] as const),
    ]);
    return this.rules.get(slashless) ?? (caseSensitive ? undefined : this.rules.get(slashless.toLowerCase()));
  }

  private spellingsOf(path: string, isCaseSensitive: boolean): string[] {
    const prefixed = this.prefixed(path);
    return isCaseSensitive ? [prefixed] : [prefixed, prefixed.toLowerCase()];
  }

  private prefixed(path: string): string {
    const isExcluded = this.config
      .getGlobalPrefixOptions()
      .exclude?.some(
        ({ requestMethod, pathRegex }) =>
          (requestMethod === RequestMethod.POST || requestMethod === RequestMethod.ALL) && pathRegex.test(`/${path}`),
      );
    const prefix = isExcluded ? [] : this.config.getGlobalPrefix().split('/');
    return `/${[...prefix, path].filter((word) => word !== '').join('/')}`;
  }
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
