import type { IncomingMessage } from 'node:http';
import contentType from 'content-type';
import { type PublishHeaders, PublishRefusedError } from '../message/index.js';

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/**
 * A media type with its parameters as RFC 9110 writes them (8.3.1, 5.6.6). The parser behind it is lenient and takes what it can. Each place
 * can be read in one way only, so that a hostile header costs no more than its length.
 */
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:[ \\t]*;(?:[ \\t]*${TOKEN}=(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*"))?)*[ \\t]*$`);

/** Why a body is refused that is not JSON in UTF-8 just as it stands: status 415. Undefined when it may be read. */
export function mediaTypeRefusalOf(request: IncomingMessage): PublishRefusedError | undefined {
  const [type, ...more] = request.headersDistinct['content-type'] ?? [];
  if (type === undefined) return refusal('content-type', 'the type is missing; send application/json');
  if (more.length > 0) return refusal('content-type', 'the header is there more than once; send application/json once');
  if (!MEDIA_TYPE.test(type)) return refusal('content-type', 'the header cannot be read; send application/json');
  const media = contentType.parse(type);
  if (media.type !== 'application/json') return refusal('content-type', 'the type is not application/json');
  const charset = media.parameters['charset'];
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') {
    return refusal('content-type', 'the charset is not utf-8; JSON is sent in UTF-8');
  }
  const codings = (request.headers['content-encoding'] ?? 'identity').split(',').map((coding) => coding.trim().toLowerCase());
  if (codings.some((coding) => coding !== 'identity')) return refusal('content-encoding', 'the body is encoded; send it as it is');
  return undefined;
}

/** What a message takes from the request's headers. A header that is there twice comes as its values joined by ", ". */
export function publishHeadersOf({ headers }: IncomingMessage): PublishHeaders {
  return {
    idempotencyKey: headers['idempotency-key']?.toString(),
    traceparent: headers['traceparent']?.toString(),
    tracestate: headers['tracestate']?.toString(),
  };
}

function refusal(field: string, reason: string): PublishRefusedError {
  return new PublishRefusedError(415, field, reason);
}
