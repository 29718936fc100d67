import { describe, expect, it } from '@jest/globals';
import { verdictOf, type Verdict } from './verdict.js';

const NOW_MS = Date.UTC(2026, 10, 30, 12, 0, 0);

function verdict(body: string | Buffer, status = 200): Verdict {
  return verdictOf({ kind: 'answer', status, body: Buffer.from(body) }, NOW_MS);
}

function reasonOf(reason: string): string | undefined {
  const outcome = verdict(JSON.stringify({ acknowledgement: 'NACK', retry: false, reason }));
  return outcome.kind === 'nack' ? outcome.reason : undefined;
}

function retryAfterMs(value: string | undefined, status = 503): number | undefined {
  const outcome = verdictOf({ kind: 'answer', status, body: Buffer.alloc(0), retryAfter: value }, NOW_MS);
  return outcome.kind === 'improper' ? outcome.retryAfterMs : undefined;
}

describe('verdictOf', () => {
  it.each([200, 201, 202, 206, 299])('takes ACK with status %i', (status) => {
    expect(verdict('{"acknowledgement":"ACK"}', status)).toEqual({ kind: 'ack' });
  });

  it.each([
    ' {\n "acknowledgement" : "ACK" }\r\n',
    '{"acknowledgement":"ACK","topic":"order.created","offset":41}',
    '{"acknowledgement":"ACK","retry":false,"reason":"none"}',
    '{"acknowledgement":"\\u0041CK"}',
    '{"acknow\\u006cedgement":"ACK"}',
    '{"a":{"acknowledgement":"NACK","acknowledgement":1},"acknowledgement":"ACK","b":[{"a":1},{"a":2}]}',
    '{"note":"\\"acknowledgement\\":","acknowledgement":"ACK"}',
    '{"__proto__":{"acknowledgement":"NACK"},"acknowledgement":"ACK"}',
  ])('takes ACK however the object is written: %s', (body) => {
    expect(verdict(body)).toEqual({ kind: 'ack' });
  });

  it('takes NACK, to be sent again', () => {
    expect(verdict('{"acknowledgement":"NACK"}')).toEqual({ kind: 'nack', retry: true });
    expect(verdict('{"acknowledgement":"NACK","reason":"busy"}')).toEqual({ kind: 'nack', retry: true, reason: 'busy' });
  });

  it('takes NACK that wants no resend, with its reason', () => {
    expect(verdict('{"acknowledgement":"NACK","retry":false}')).toEqual({ kind: 'nack', retry: false });
    expect(verdict('{"acknowledgement":"NACK","retry":false,"reason":"unknown order"}')).toEqual({
      kind: 'nack',
      retry: false,
      reason: 'unknown order',
    });
  });

  it.each(['true', '"false"', '0', 'null', '""', '[]', '{}', '[false]'])('sends again unless retry is the boolean false: %s', (retry) => {
    expect(verdict(`{"acknowledgement":"NACK","retry":${retry}}`)).toEqual({ kind: 'nack', retry: true });
  });

  it.each(['1', 'null', 'true', '{"a":1}', '["a"]'])('leaves out a reason that is no string: %s', (reason) => {
    expect(verdict(`{"acknowledgement":"NACK","retry":false,"reason":${reason}}`)).toEqual({ kind: 'nack', retry: false });
  });

  it('makes a reason harmless in a log and bounds it to 1000 characters', () => {
    expect(reasonOf('a\r\nERROR forged\u001b[31m\u0000\u007f\u0085\u2028\u2029b')).toBe('a  ERROR forged [31m     b');
    expect(reasonOf('한국 é 😀')).toBe('한국 é 😀');
    expect(reasonOf('\ud800x\udc00')).toBe(' x ');
    expect(reasonOf('x'.repeat(1000))).toBe('x'.repeat(1000));
    expect(reasonOf('x'.repeat(1001))).toBe('x'.repeat(1000));
    expect(reasonOf('😀'.repeat(1001))).toBe('😀'.repeat(1000));
  });

  it.each<[string, string | Buffer]>([
    ['empty body', ''],
    ['body is no JSON object in UTF-8', 'ACK'],
    ['body is no JSON object in UTF-8', '"ACK"'],
    ['body is no JSON object in UTF-8', 'null'],
    ['body is no JSON object in UTF-8', '1'],
    ['body is no JSON object in UTF-8', '[]'],
    ['body is no JSON object in UTF-8', '[{"acknowledgement":"ACK"}]'],
    ['body is no JSON object in UTF-8', '{"acknowledgement":"ACK"'],
    ['body is no JSON object in UTF-8', '{"acknowledgement":"ACK"}x'],
    ['body is no JSON object in UTF-8', "{'acknowledgement':'ACK'}"],
    ['body is no JSON object in UTF-8', '\ufeff{"acknowledgement":"ACK"}'],
    ['body is no JSON object in UTF-8', Buffer.from('{"acknowledgement":"ACK","note":"\xff"}', 'latin1')],
    ['body is no JSON object in UTF-8', Buffer.from('{"acknowledgement":"ACK"}', 'utf16le')],
    ['body is no JSON object in UTF-8', '['.repeat(65_536)],
    ['body has "acknowledgement" or "retry" twice', '{"acknowledgement":"NACK","acknowledgement":"ACK"}'],
    ['body has "acknowledgement" or "retry" twice', '{"acknowledgement":"ACK","acknowledgement":"ACK"}'],
    ['body has "acknowledgement" or "retry" twice', '{"acknowledgement":"NACK","\\u0061cknowledgement":"ACK"}'],
    ['body has "acknowledgement" or "retry" twice', '{"acknowledgement":"NACK","retry":true,"retry":false}'],
    ['body has no "acknowledgement" of "ACK" or "NACK"', '{}'],
    ['body has no "acknowledgement" of "ACK" or "NACK"', '{"acknowledgement":"ack"}'],
    ['body has no "acknowledgement" of "ACK" or "NACK"', '{"acknowledgement":"ACK "}'],
    ['body has no "acknowledgement" of "ACK" or "NACK"', '{"acknowledgement":"Nack"}'],
    ['body has no "acknowledgement" of "ACK" or "NACK"', '{"acknowledgement":true}'],
    ['body has no "acknowledgement" of "ACK" or "NACK"', '{"acknowledgement":["ACK"]}'],
    ['body has no "acknowledgement" of "ACK" or "NACK"', '{"Acknowledgement":"ACK"}'],
    ['body has no "acknowledgement" of "ACK" or "NACK"', '{"__proto__":{"acknowledgement":"ACK"}}'],
    ['body has no "acknowledgement" of "ACK" or "NACK"', '{"answer":{"acknowledgement":"ACK"}}'],
  ])('finds improper, because of %s, what is neither: %s', (problem, body) => {
    expect(verdict(body)).toEqual({ kind: 'improper', reason: `status 200, ${problem}` });
  });

  it.each([101, 199, 300, 301, 304, 400, 404, 409, 429, 500, 503])('finds status %i improper, whatever its body says', (status) => {
    expect(verdict('{"acknowledgement":"ACK"}', status)).toEqual({ kind: 'improper', reason: `status ${status}` });
    expect(verdict('{"acknowledgement":"NACK","retry":false}', status)).toEqual({ kind: 'improper', reason: `status ${status}` });
  });

  it('hands on the reason of a failure', () => {
    expect(verdictOf({ kind: 'failure', reason: 'connection refused (ECONNREFUSED)' })).toEqual({
      kind: 'improper',
      reason: 'connection refused (ECONNREFUSED)',
    });
  });

  it.each([
    ['0', 0],
    ['1', 1000],
    ['007', 7000],
    ['120', 120_000],
    ['9007199254740', 9_007_199_254_740_000],
    ['Mon, 30 Nov 2026 12:00:01 GMT', 1000],
    ['Tue, 01 Dec 2026 12:00:00 GMT', 86_400_000],
  ])('reads Retry-After %j', (value, ms) => {
    expect(retryAfterMs(value)).toBe(ms);
    expect(retryAfterMs(value, 301)).toBe(ms);
  });

  it.each([
    undefined,
    '',
    ' ',
    '-1',
    '+1',
    '1.5',
    '1e3',
    '0x10',
    '1, 2',
    '1s',
    'soon',
    'Invalid Date',
    'NaN',
    'Infinity',
    '9007199254741',
    '9'.repeat(400),
    '٣',
    '2030-01',
    '2030-01-01T00:00:00Z',
    'Mon, 30 Nov 2026 12:00:00 GMT',
    'Sun, 29 Nov 2026 12:00:00 GMT',
    'Sun, 01 Dec 2026 12:00:00 GMT',
    'Tue, 1 Dec 2026 12:00:00 GMT',
    'Tue, 01 Dec 2026 12:00:00 UTC',
    'Tue, 01 Dec 2026 25:00:00 GMT',
    'Wed, 31 Feb 2027 12:00:00 GMT',
    'Tue, 01 Dec 275761 12:00:00 GMT',
  ])('ignores Retry-After %j', (value) => {
    expect(retryAfterMs(value)).toBeUndefined();
  });

  it('ignores Retry-After on a 2xx answer', () => {
    expect(retryAfterMs('120', 200)).toBeUndefined();
  });
});
