import { describe, expect, it } from '@jest/globals';
import { type BatchFormat, PublishRefusedError, splitBatch } from './index.js';

const split = (format: BatchFormat, body: string | Buffer, maxMessages = 100): string[] =>
  splitBatch(Buffer.from(body), format, maxMessages).map(String);

function refusal(format: BatchFormat, body: string | Buffer, maxMessages?: number): { status: number; reason: string } {
  try {
    split(format, body, maxMessages);
  } catch (error) {
    if (error instanceof PublishRefusedError) return { status: error.status, reason: error.reason };
    throw error;
  }
  throw new Error('it was accepted');
}

describe('a batch of lines', () => {
  it.each([
    ['one line without an end', '{"a":1}', ['{"a":1}']],
    ['lines with an end each', '{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']],
    ['carriage returns', '{"a":1}\r\n{"b":2}\r\n', ['{"a":1}', '{"b":2}']],
    ['empty lines in between', '\n\r\n{"a":1}\n\n\n{"b":2}\n\n', ['{"a":1}', '{"b":2}']],
    ['what is no JSON, which is each line alone to answer for', 'no\n{"a":\n', ['no', '{"a":']],
  ])('is split at line feeds: %s', (_what, body, lines) => {
    expect(split('ndjson', body)).toEqual(lines);
  });

  it('gives views into the body, not copies', () => {
    const body = Buffer.from('{"a":1}\n{"b":2}');
    for (const line of splitBatch(body, 'ndjson', 2)) expect(line.buffer).toBe(body.buffer);
  });
});

describe('a batch that is an array', () => {
  it.each([
    ['one element', '[{"a":1}]', ['{"a":1}']],
    ['white space', ' [ {"a":1} ,\r\n\t{"b": [1, 2]} ] \n', ['{"a":1}', '{"b": [1, 2]}']],
    [
      'what is no message, which is each element alone to answer for',
      '[1,"x",null,[{}],{"a":"]"}]',
      ['1', '"x"', 'null', '[{}]', '{"a":"]"}'],
    ],
    [
      'an element that is deeper than a message may be',
      `[${'['.repeat(600)}${']'.repeat(600)},1]`,
      [`${'['.repeat(600)}${']'.repeat(600)}`, '1'],
    ],
  ])('is split into its elements: %s', (_what, body, elements) => {
    expect(split('array', body)).toEqual(elements);
  });

  it.each([
    ['an object', '{"a":1}', 'the body is a JSON array of messages, nothing else'],
    ['nothing', '', 'the body is a JSON array of messages, nothing else'],
    ['one that does not end', '[{"a":1}', 'the body is not JSON: expected "," or "]", at byte 8; nothing of the batch is stored'],
    ['a comma too many', '[{"a":1},]', 'the body is not JSON: expected a value, at byte 9; nothing of the batch is stored'],
    ['a comma too few', '[{"a":1}{"b":2}]', 'the body is not JSON: expected "," or "]", at byte 8; nothing of the batch is stored'],
    ['something behind it', '[{"a":1}] []', 'the body is not JSON: expected nothing more, at byte 10; nothing of the batch is stored'],
    [
      'an element that is no JSON',
      '[{"a":1},{"b":02}]',
      'the body is not JSON: expected "," or "}", at byte 15; nothing of the batch is stored',
    ],
    ['bytes that are no UTF-8', Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]), 'the body is not valid UTF-8'],
    [
      'a million levels',
      '['.repeat(1_000_000),
      'the body has more than 1024 levels of arrays and objects, at byte 1025; nothing of the batch is stored',
    ],
  ])('is refused as a whole: %s', (_what, body, reason) => {
    expect(refusal('array', body)).toEqual({ status: 400, reason });
  });
});

describe.each<[BatchFormat, string, string]>([
  ['ndjson', '\r\n\n', '{}\n{}\n{}'],
  ['array', '[ ]', '[{},{},{}]'],
])('a batch (%s)', (format, empty, three) => {
  it('has one message at least', () => {
    expect(refusal(format, empty)).toEqual({ status: 400, reason: 'the batch has no message; send one at least' });
  });

  it('has no more messages than it may', () => {
    expect(split(format, three, 3)).toHaveLength(3);
    expect(refusal(format, three, 2)).toEqual({ status: 413, reason: 'the batch has more messages than batch.max-messages, which is 2' });
  });
});
