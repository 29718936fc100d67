import type { IncomingMessage } from 'node:http';
import type { PublishHeaders } from '../message/index.js';

/** What a message takes from the request's headers. A header that is there twice comes as its values joined by ", ". */
export function publishHeadersOf({ headers }: IncomingMessage): PublishHeaders {
  return {
    idempotencyKey: headers['idempotency-key']?.toString(),
    traceparent: headers['traceparent']?.toString(),
    tracestate: headers['tracestate']?.toString(),
  };
}
