import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** What is used of a Fastify request, which has Node's in it. */
export interface FastifyRequest {
  readonly raw: IncomingMessage;
  headers: Record<string, unknown>;
}

export interface FastifyReply {
  readonly raw: ServerResponse;
  getHeaders(): OutgoingHttpHeaders;
  hijack(): void;
}

/** A request as Nest gives it to a handler: on Express it is Node's own. */
export type PlatformRequest = IncomingMessage | FastifyRequest;
export type PlatformResponse = ServerResponse | FastifyReply;

export function requestOf(request: PlatformRequest): IncomingMessage {
  return 'raw' in request ? request.raw : request;
}

/** Node's response, for whoever answers by himself: with the headers that plugins have set so far, and Fastify keeps out of it from here on. */
export function responseOf(response: PlatformResponse): ServerResponse {
  if (!('raw' in response)) return response;
  for (const [name, value] of Object.entries(response.getHeaders())) {
    if (value !== undefined) response.raw.setHeader(name, value);
  }
  response.hijack();
  return response.raw;
}
