/**
 * W3C Trace Context: what a producer's tracing sends along, kept verbatim and handed on with each delivery. A broken trace never costs a
 * message: what is not valid is left out.
 *
 * Source: https://www.w3.org/TR/trace-context/ (sections 3.2 and 3.3).
 */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** A traceparent of a later version may carry more; this much of it is certainly an honest one. */
const MAX_TRACEPARENT_LENGTH = 256;

/**
 * In characters; the standard asks for 512 at least. More is not kept: together with key and headers at their largest a delivery must stay
 * below the 16 KiB of headers that most HTTP servers read.
 */
const MAX_TRACESTATE_LENGTH = 512;
const MAX_TRACESTATE_MEMBERS = 32;

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[\x20-\x7e]*)?$/;
const ALL_ZEROS = /^0+$/;

/** `key=value`; the key either simple or `tenant@system`, the value printable ASCII without "," and "=", not ending in a space. */
const TRACESTATE_MEMBER =
  /^(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const OPTIONAL_SPACE = /^[ \t]+|[ \t]+$/g;

/** The trace context of two header values, or undefined when the traceparent is missing or not valid. */
export function traceContextOf(traceparent: string | undefined, tracestate: string | undefined): TraceContext | undefined {
  if (traceparent === undefined || !isTraceparent(traceparent)) return undefined;
  if (tracestate === undefined || !isTracestate(tracestate)) return { traceparent };
  return { traceparent, tracestate };
}

/** Version 00 has exactly four parts; a later one may have more behind a further dash. Version ff and ids of zeros alone are not valid. */
function isTraceparent(value: string): boolean {
  if (value.length > MAX_TRACEPARENT_LENGTH) return false;
  const [, version = '', traceId = '', parentId = '', more] = TRACEPARENT.exec(value) ?? [];
  if (version === '' || version === 'ff') return false;
  if (version === '00' && more !== undefined) return false;
  return !ALL_ZEROS.test(traceId) && !ALL_ZEROS.test(parentId);
}

/** Empty members are allowed between commas, but one at least must say something. */
function isTracestate(value: string): boolean {
  if (value.length > MAX_TRACESTATE_LENGTH) return false;
  const members = value.split(',').map((member) => member.replace(OPTIONAL_SPACE, ''));
  if (members.length > MAX_TRACESTATE_MEMBERS) return false;
  return members.every((member) => member === '' || TRACESTATE_MEMBER.test(member)) && members.some((member) => member !== '');
}
