import { describe, expect, it } from '@jest/globals';
import { jsonElements } from './json-elements.js';

describe('the elements of a JSON array', () => {
  it('are its bytes as they stand, in order', () => {
    expect(jsonElements(Buffer.from(' [ {"a": 1.0} ,[],\n"é" ] '))?.map(String)).toEqual(['{"a": 1.0}', '[]', '"é"']);
    expect(jsonElements(Buffer.from('[]'))).toEqual([]);
  });

  it.each([['{}'], ['[1'], ['[1]x'], ['[1,]'], [''], [Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d])], ['['.repeat(2000) + ']'.repeat(2000)]])(
    'are none in what is no JSON array in UTF-8: %s',
    (body) => {
      expect(jsonElements(Buffer.from(body))).toBeUndefined();
    },
  );

  it('are no more than are wanted', () => {
    expect(jsonElements(Buffer.from('[1,2]'), 2)).toHaveLength(2);
    expect(jsonElements(Buffer.from('[1,2]'), 1)).toBeUndefined();
  });
});
