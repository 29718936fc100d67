/** The failures that the clients bring about themselves. */
export const FailureReason = {
  stopping: 'broker is stopping',
  cutShort: 'connection closed before the answer was complete',
  unaskedContinue: '100 Continue that was not asked for',
  unaskedUpgrade: 'upgrade that was not asked for',
  answerLargerThan: (maxBytes: number): string => `answer larger than ${maxBytes} bytes`,
  noAnswerWithin: (timeoutMs: number): string => `no answer within ${timeoutMs} ms`,
} as const;

/** Codes of Node.js, of its HTTP parser and of undici, and names where there is no code, in the words of an operator. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'connection reset'],
  ['EPIPE', 'connection reset'],
  ['ENOTFOUND', 'name not found'],
  ['EAI_AGAIN', 'name server does not answer'],
  ['EHOSTUNREACH', 'host not reachable'],
  ['ENETUNREACH', 'network not reachable'],
  ['ETIMEDOUT', 'no connection'],
  ['HPE_HEADER_OVERFLOW', 'headers of the answer too large'],
  ['UND_ERR_HEADERS_OVERFLOW', 'headers of the answer too large'],
  ['HPE_INVALID_EOF_STATE', FailureReason.cutShort],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', FailureReason.cutShort],
  ['UND_ERR_SOCKET', FailureReason.cutShort],
  // undici's parser gives its errors a name and no code.
  ['HTTPParserError', 'answer is not HTTP'],
]);

const CODE_OR_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
const TLS_CODE = /^(EPROTO$|ERR_SSL_|ERR_TLS_|UNABLE_TO_|HOSTNAME_MISMATCH$)|CERT/;

/**
 * What to log about an error: words and its code, or else its name, as in `connection refused (ECONNREFUSED)`. Never its message, which
 * may quote what was sent or answered.
 */
export function failureReason(error: unknown): string {
  const code = codeOf(error);
  return code === undefined ? 'the request failed' : `${wordsFor(code)} (${code})`;
}

function wordsFor(code: string): string {
  const words = WORDS.get(code);
  if (words !== undefined) return words;
  if (code.startsWith('HPE_')) return 'answer is not HTTP';
  return TLS_CODE.test(code) ? 'no TLS connection' : 'the request failed';
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, name } = error as { code?: unknown; name?: unknown };
  return [code, name].find((text): text is string => typeof text === 'string' && CODE_OR_NAME.test(text));
}
