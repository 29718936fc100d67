import { describe, expect, it } from '@jest/globals';
import { isJson } from './is-json.js';

const nested = (levels: number): Buffer => Buffer.from('['.repeat(levels) + ']'.repeat(levels));

describe('isJson', () => {
  it.each(['{"a":[1,2,{"b":null}]}', ' true\n', '"ä"', '-1.5e3', '[]'])('takes %s', (text) => {
    expect(isJson(Buffer.from(text))).toBe(true);
  });

  it.each(['', ' ', '{', '{"a":1}x', '1 2', "{'a':1}", 'undefined', '\uFEFF{}', '[1,]'])('takes no %j', (text) => {
    expect(isJson(Buffer.from(text))).toBe(false);
  });

  it('takes no bytes that are no UTF-8', () => {
    expect(isJson(Buffer.from([0x22, 0xff, 0x22]))).toBe(false);
  });

  it('takes as many levels as it was told, and no more', () => {
    expect([isJson(nested(513), 513), isJson(nested(514), 513)]).toEqual([true, false]);
    expect([isJson(nested(1024)), isJson(nested(1025))]).toEqual([true, false]);
  });
});
