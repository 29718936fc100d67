import type { IncomingMessage, ServerResponse } from 'node:http';

export type RequestHandler = (request: IncomingMessage, response: ServerResponse, next: () => void) => unknown;

interface Route {
  readonly path: unknown;
  readonly stack: readonly { readonly handle: RequestHandler; readonly method?: string }[];
}

/** What is read of an Express application. */
export interface RoutingApp {
  (request: IncomingMessage, response: ServerResponse): unknown;
  readonly router: { readonly stack: readonly Layer[] };
  enabled(setting: string): boolean;
}
interface Layer {
  readonly handle: RequestHandler;
  readonly route?: Route;
  match(path: string): unknown;
}

/** Handlers with four parameters are for errors alone. */
const ERROR_HANDLER_PARAMETERS = 4;

/**
 * A route that can be served without Express's walk through all that is registered, as long as that walk would meet nothing else that wants
 * the request before the route does.
 */
export class DirectRoute {
  private judgedLayers = -1;
  private found: { readonly route: Route; readonly handle: RequestHandler } | undefined;

  /**
   * @param path as a request has it, without parameters and query
   * @param passable middleware that has nothing to do for a request that is served directly
   */
  constructor(
    private readonly app: RoutingApp,
    private readonly method: string,
    private readonly path: string,
    private readonly passable: ReadonlySet<RequestHandler>,
  ) {}

  /** The route and its handler; undefined where Express must be asked. What is registered later is seen. */
  target(): { readonly route: Route; readonly handle: RequestHandler } | undefined {
    const { stack } = this.app.router;
    if (stack.length !== this.judgedLayers) {
      this.judgedLayers = stack.length;
      this.found = this.app.enabled('x-powered-by') ? undefined : this.find(stack);
    }
    return this.found;
  }

  private find(stack: readonly Layer[]): { readonly route: Route; readonly handle: RequestHandler } | undefined {
    for (const layer of stack) {
      const { handle, route } = layer;
      if (this.passable.has(handle) || layer.match(this.path) === false) continue;
      if (route === undefined) {
        if (handle.length >= ERROR_HANDLER_PARAMETERS) continue;
        return undefined;
      }
      const [first, ...more] = route.stack.filter(({ method }) => method === undefined || method === this.method.toLowerCase());
      if (first === undefined) continue;
      return more.length === 0 && route.path === this.path ? { route, handle: first.handle } : undefined;
    }
    return undefined;
  }
}
