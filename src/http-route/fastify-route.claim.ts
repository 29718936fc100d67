import type { BodyReader, BodyRule } from './body.reader.js';
import type { FastifyReply, FastifyRequest } from './platform.js';
import type { RoutePaths } from './route-paths.js';

type Done = (error?: Error | null) => void;
type Hook = (request: FastifyRequest, reply: FastifyReply, done: Done) => void;
type PreParsingHook = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: Done) => void;

/** What is used of the options of a route that is being registered. */
interface RouteOptions {
  readonly method: string | readonly string[];
  readonly url: string;
  preParsing?: PreParsingHook | PreParsingHook[];
  preValidation?: Hook | Hook[];
}

/** What is used of a Fastify instance. */
export interface FastifyInstance {
  addHook(name: 'onRoute', hook: (route: RouteOptions) => void): void;
}

/** So a request looks that has no body, and that no body parser is asked about. */
const WITHOUT_BODY = { 'content-type': undefined, 'content-length': '0', 'transfer-encoding': undefined };

/**
 * Claims the bodies of a route and its batch route on Fastify. It looks for a parser by the headers and answers itself where it has none, or where the body is
 * larger than its own limit. So the body is read before that, and until it has passed its parsers Fastify is shown headers without one.
 */
export function claimFastifyRoutes(fastify: FastifyInstance, paths: RoutePaths, bodies: BodyReader): void {
  fastify.addHook('onRoute', (route) => {
    if (![route.method].flat().includes('POST')) return;
    if (route.url === paths.single) claim(route, bodies, bodies.single);
    if (route.url === paths.batch) claim(route, bodies, bodies.batch);
  });
}

function claim(route: RouteOptions, bodies: BodyReader, rule: BodyRule): void {
  const shown = new WeakMap<FastifyRequest, FastifyRequest['headers']>();
  const read: PreParsingHook = (request, reply, _payload, done) => {
    bodies.claim(request.raw, reply.raw, rule, () => {
      shown.set(request, request.headers);
      request.headers = { ...request.headers, ...WITHOUT_BODY };
      done();
    });
  };
  const show: Hook = (request, _reply, done) => {
    request.headers = shown.get(request) ?? request.headers;
    done();
  };
  // In front of the application's own: they find the headers as they came.
  route.preParsing = [read, ...[route.preParsing ?? []].flat()];
  route.preValidation = [show, ...[route.preValidation ?? []].flat()];
}
