import type { IncomingMessage } from 'node:http';
import contentType from 'content-type';
import type { Refusal } from './http-answer.js';

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const PARAMETER = `(${TOKEN})=(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*")`;
/**
 * A media type with its parameters as RFC 9110 writes them (8.3.1, 5.6.6). The parser behind it is lenient and takes what it can. Each place
 * can be read in one way only, so that a hostile header costs no more than its length.
 */
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:[ \\t]*;(?:[ \\t]*${PARAMETER})?)*[ \\t]*$`);
const PARAMETERS = new RegExp(`;[ \\t]*${PARAMETER}`, 'g');

/**
 * Why a body is refused that is not of one of these types, in UTF-8, just as it stands: status 415. Undefined when it may be read.
 * @param types in lower case, as `application/json`
 */
export function mediaTypeRefusalOf(request: IncomingMessage, types: readonly string[]): Refusal | undefined {
  const contentTypeRefusal = contentTypeRefusalOf(request, types);
  if (contentTypeRefusal !== undefined) return contentTypeRefusal;
  const codings = request.headers['content-encoding']?.split(',').map((coding) => coding.trim().toLowerCase());
  if (codings?.some((coding) => coding !== 'identity')) return refusal('content-encoding', 'the body is encoded; send it as it is');
  const transferCoding = request.headers['transfer-encoding'];
  if (transferCoding !== undefined && transferCoding.toLowerCase() !== 'chunked') {
    return refusal('transfer-encoding', 'the body is encoded for the transfer; send it in chunks or with its length, and nothing else');
  }
  return undefined;
}

function contentTypeRefusalOf({ headers, rawHeaders }: IncomingMessage, types: readonly string[]): Refusal | undefined {
  const type = headers['content-type'];
  const expected = (): string => types.join(' or ');
  if (type === undefined) return refusal('content-type', `the type is missing; send ${expected()}`);
  if (isRepeated('content-type', rawHeaders)) return refusal('content-type', `the header is there more than once; send ${expected()} once`);
  // As nearly everybody spells it, there is nothing to parse.
  if (types.includes(type)) return undefined;
  if (!MEDIA_TYPE.test(type)) return refusal('content-type', `the header cannot be read; send ${expected()}`);
  const media = contentType.parse(type);
  if (!types.includes(media.type)) return refusal('content-type', `the type is not ${expected()}`);
  const repeated = repeatedParameterOf(type);
  if (repeated !== undefined) return refusal('content-type', `the parameter ${repeated} is there more than once`);
  const charset = media.parameters['charset'];
  if (charset === undefined || charset.toLowerCase() === 'utf-8') return undefined;
  return refusal('content-type', 'the charset is not utf-8; JSON is sent in UTF-8');
}

/** Of a header that may be there once only Node shows the first. @param rawHeaders names and values in turn */
function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const rawName = rawHeaders[index] as string;
    if (rawName.length === name.length && rawName.toLowerCase() === name) count += 1;
  }
  return count > 1;
}

/** The media type of a body that is not refused. */
export function mediaTypeOf({ headers }: IncomingMessage): string {
  return contentType.parse(headers['content-type'] ?? '').type;
}

/** Two values of one parameter can be read in two ways: what another reader on the way took may not be what is taken here. */
function repeatedParameterOf(mediaType: string): string | undefined {
  const names = new Set<string>();
  for (const [, name = ''] of mediaType.matchAll(PARAMETERS)) {
    const lowerCase = name.toLowerCase();
    if (names.has(lowerCase)) return lowerCase;
    names.add(lowerCase);
  }
  return undefined;
}

function refusal(field: string, reason: string): Refusal {
  return { status: 415, field, reason };
}
