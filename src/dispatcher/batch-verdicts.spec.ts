import { describe, expect, it } from '@jest/globals';
import { batchVerdictsOf } from './batch-verdicts.js';
import type { Verdicts } from './verdict.js';

const NOW_MS = Date.UTC(2026, 10, 30, 12, 0, 0);
const ACK = '{"acknowledgement":"ACK"}';
const NACK = '{"acknowledgement":"NACK"}';

function verdicts(body: string | Buffer, count: number, status = 200): Verdicts {
  return batchVerdictsOf({ kind: 'answer', status, body: Buffer.from(body) }, count, NOW_MS);
}

const improper = (reason: string): object => ({ acks: 0, other: { kind: 'improper', reason: `status 200, ${reason}` } });

describe('the verdicts on a batch', () => {
  it.each([
    [`[${ACK}]`, 1, 1],
    [`[${ACK},${ACK},${ACK}]`, 3, 3],
    [`[${ACK},${ACK}]`, 3, 2],
    [` [\n${ACK} ,\t{ "offset": 3, "acknowledgement" : "ACK" }, {"acknowledgement":"\\u0041CK"} ]\r\n`, 3, 3],
    [`[${ACK},{"acknowledgement":"ACK","retry":false,"reason":"none"}]`, 2, 2],
  ])('are as many ACKs as there are, also where they end early: %s on %i', (body, count, acks) => {
    expect(verdicts(body, count)).toEqual({ acks });
    expect(verdicts(body, count, 202)).toEqual({ acks });
  });

  it('end with the first NACK, which comes with its own bytes', () => {
    expect(verdicts(`[${NACK}]`, 3)).toEqual({
      acks: 0,
      other: { kind: 'nack', retry: true },
      answer: { status: 200, body: Buffer.from(NACK) },
    });
    const refusal = '{"acknowledgement":"NACK", "retry":false,"reason":"unknown\\norder"}';
    expect(verdicts(`[${ACK},${ACK},  ${refusal} ,${ACK}]`, 5, 207)).toEqual({
      acks: 2,
      other: { kind: 'nack', retry: false, reason: 'unknown order' },
      answer: { status: 207, body: Buffer.from(refusal) },
    });
  });

  it('are not looked at behind the first that is no ACK', () => {
    for (const behind of [ACK, NACK, 'null', '"ACK"', '[[]]', '{"acknowledgement":"ACK","acknowledgement":"NACK"}']) {
      expect(verdicts(`[${ACK},${NACK},${behind}]`, 3)).toMatchObject({ acks: 1, other: { kind: 'nack' } });
      expect(verdicts(`[${ACK},1,${behind}]`, 3)).toMatchObject({ acks: 1, other: { kind: 'improper' } });
    }
  });

  it.each([
    ['null', 'is no JSON object in UTF-8'],
    ['[]', 'is no JSON object in UTF-8'],
    ['"ACK"', 'is no JSON object in UTF-8'],
    ['{}', 'has no "acknowledgement" of "ACK" or "NACK"'],
    ['{"acknowledgement":"ack"}', 'has no "acknowledgement" of "ACK" or "NACK"'],
    ['{"acknowledgement":"ACK","acknowledgement":"ACK"}', 'has "acknowledgement" or "retry" twice'],
  ])('count as far as they are proper, and are improper from there on: %s', (element, problem) => {
    const other = { kind: 'improper', reason: `status 200, verdict ${problem}` };
    expect(verdicts(`[${element}]`, 2)).toEqual({ acks: 0, other });
    expect(verdicts(`[${ACK},${ACK},${element}]`, 3)).toEqual({ acks: 2, other });
  });

  it.each<[string, string | Buffer]>([
    ['body is no JSON array in UTF-8', ''],
    ['body is no JSON array in UTF-8', ACK],
    ['body is no JSON array in UTF-8', '"ACK"'],
    ['body is no JSON array in UTF-8', `[${ACK}`],
    ['body is no JSON array in UTF-8', `[${ACK},]`],
    ['body is no JSON array in UTF-8', `[${ACK}]x`],
    ['body is no JSON array in UTF-8', `[${ACK} ${ACK}]`],
    ['body is no JSON array in UTF-8', `${ACK}\n${ACK}`],
    ['body is no JSON array in UTF-8', `\ufeff[${ACK}]`],
    ['body is no JSON array in UTF-8', Buffer.from(`[${ACK},"\xff"]`, 'latin1')],
    ['body is no JSON array in UTF-8', '['.repeat(65_536)],
    ['no verdict in the array', '[]'],
    ['no verdict in the array', ' [ ] '],
    ['3 verdicts on 2 messages', `[${ACK},${ACK},${ACK}]`],
    ['3 verdicts on 2 messages', `[${NACK},1,2]`],
  ])('are improper as a whole, because of %s: %s', (problem, body) => {
    expect(verdicts(body, 2)).toEqual(improper(problem));
  });

  it('are improper as a whole with any other status, and where there is no answer', () => {
    for (const status of [199, 300, 404, 413, 500]) {
      expect(verdicts(`[${ACK}]`, 1, status)).toEqual({ acks: 0, other: { kind: 'improper', reason: `status ${status}` } });
    }
    const busy = batchVerdictsOf({ kind: 'answer', status: 503, body: Buffer.from(`[${ACK}]`), retryAfter: '7' }, 1, NOW_MS);
    expect(busy).toEqual({ acks: 0, other: { kind: 'improper', reason: 'status 503', retryAfterMs: 7000 } });
    const failure = batchVerdictsOf({ kind: 'failure', reason: 'connection refused (ECONNREFUSED)' }, 1, NOW_MS);
    expect(failure).toEqual({ acks: 0, other: { kind: 'improper', reason: 'connection refused (ECONNREFUSED)' } });
  });
});
