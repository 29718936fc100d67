/*
 * The rules of a message's own members. Each function gives the rule that is broken, or undefined. What passes can be sent as an HTTP header
 * (percent-encoded where it is not ASCII) without any further look at it.
 */

const MAX_ID_LENGTH = 96;
const MAX_KEY_BYTES = 256;
export const MAX_HEADERS_BYTES = 4096;
/**
 * Each header costs its `mmmq-header-` on the way to the consumer as well. With so many at the most, all that a delivery sends stays below
 * the 16 KiB that HTTP servers read of headers, also with every byte of the values percent-encoded; beyond, no attempt could ever succeed.
 */
export const MAX_HEADERS = 64;

const ID = /^[A-Za-z0-9._:-]{1,96}$/;
const HEADER_NAME = /^[a-z0-9-]{1,64}$/;
/** U+0000-001F and U+007F-009F. */
const CONTROL_CHARACTER = /\p{Cc}/u;
/** Half of a pair without the other: JSON can spell it, UTF-8 has no form for it. */
const LONE_SURROGATE = /\p{Cs}/u;

export function idProblem(id: string): string | undefined {
  return ID.test(id) ? undefined : `an id has 1 to ${MAX_ID_LENGTH} characters out of A-Z, a-z, 0-9, ".", "_", ":" and "-"`;
}

export function keyProblem(key: string): string | undefined {
  const bytes = Buffer.byteLength(key);
  if (bytes < 1 || bytes > MAX_KEY_BYTES) return `a key has 1 to ${MAX_KEY_BYTES} bytes of UTF-8, this has ${bytes}`;
  return textProblem(key, 'a key');
}

export function headerNameProblem(name: string): string | undefined {
  return HEADER_NAME.test(name) ? undefined : 'a header name has 1 to 64 characters out of a-z, 0-9 and "-"';
}

export function headerValueProblem(value: string): string | undefined {
  return textProblem(value, 'a header value');
}

function textProblem(text: string, what: string): string | undefined {
  if (CONTROL_CHARACTER.test(text)) return `${what} has no control characters (U+0000 to U+001F, U+007F to U+009F)`;
  if (LONE_SURROGATE.test(text)) return `${what} has no lone surrogates (U+D800 to U+DFFF), which have no form in UTF-8`;
  return undefined;
}
