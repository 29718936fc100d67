import { describe, expect, it } from '@jest/globals';
import { JsonScanError, JsonScanner } from './json-scanner.js';

function scan(text: string, maxDepth = 512): void {
  const json = new JsonScanner(Buffer.from(text), maxDepth);
  json.skipValue();
  json.expectEnd();
}

function failure(text: string, maxDepth?: number): JsonScanError {
  try {
    scan(text, maxDepth);
  } catch (error) {
    if (error instanceof JsonScanError) return error;
    throw error;
  }
  throw new Error(`${text} was accepted`);
}

function nested(levels: number): string {
  return '[{"a":'.repeat(levels / 2) + '1' + '}]'.repeat(levels / 2);
}

/** The names in an object of objects, in the order in which they are met. */
function steps(text: string): string[] {
  const json = new JsonScanner(Buffer.from(text), 512);
  const names: string[] = [];
  json.enterObject();
  while (json.nextMember()) {
    names.push(text.slice(json.nameStart, json.nameEnd));
    json.enterObject();
    while (json.nextMember()) {
      names.push(text.slice(json.nameStart, json.nameEnd));
      json.skipValue();
    }
  }
  json.expectEnd();
  return names;
}

describe('the JSON scanner', () => {
  it.each([
    ['', 0, 'expected a value'],
    ['  ', 2, 'expected a value'],
    ['tru', 0, 'expected a value'],
    ['True', 0, 'expected a value'],
    ['nulll', 4, 'expected nothing more'],
    ['01', 1, 'expected nothing more'],
    ['-', 1, 'expected a digit'],
    ['+1', 0, 'expected a value'],
    ['.5', 0, 'expected a value'],
    ['1.', 2, 'expected a digit'],
    ['1.e1', 2, 'expected a digit'],
    ['1e', 2, 'expected a digit'],
    ['1e+', 3, 'expected a digit'],
    ['-01', 2, 'expected nothing more'],
    ['NaN', 0, 'expected a value'],
    ['[1,]', 3, 'expected a value'],
    ['[,1]', 1, 'expected a value'],
    ['[1 2]', 3, 'expected "," or "]"'],
    ['[1}', 2, 'expected "," or "]"'],
    ['[', 1, 'expected a value'],
    ['[1', 2, 'expected "," or "]"'],
    ['{"a":1,}', 7, 'expected a member name'],
    ['{,}', 1, 'expected a member name'],
    ['{a:1}', 1, 'expected a member name'],
    ['{"a"}', 4, 'expected ":"'],
    ['{"a":}', 5, 'expected a value'],
    ['{"a":1]', 6, 'expected "," or "}"'],
    ['"', 1, 'a string does not end'],
    ['"\\', 2, 'an escape that JSON does not know'],
    ['"\\x41"', 2, 'an escape that JSON does not know'],
    ['"\\u12g4"', 5, 'four hexadecimal digits'],
    ['"\\u12', 5, 'four hexadecimal digits'],
    ['"a\tb"', 2, 'a control character'],
    ['"a\nb"', 2, 'a control character'],
    ['"a\0b"', 2, 'a control character'],
    ["'a'", 0, 'expected a value'],
    ['1 // one', 2, 'expected nothing more'],
    ['\u00a01', 0, 'expected a value'],
    ['\ufeff1', 0, 'expected a value'],
    ['\f1', 0, 'expected a value'],
  ])('refuses %j at byte %d, naming what was expected', (text, position, rule) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
    const error = failure(text);
    expect(error).toMatchObject({ position, kind: 'syntax' });
    expect(error.message).toContain(rule);
  });

  it.each([
    '0',
    '-0',
    '-0.0e-0',
    '1E400',
    '123456789012345678901234567890',
    '1.0',
    'true',
    'false',
    'null',
    '""',
    '"\\"\\\\\\/\\b\\f\\n\\r\\t\\uD800"',
    '"\u007f\u2028주문😀"',
    '[]',
    '{}',
    ' \t\r\n[ 1 , { "a" : [ ] , "a" : { } } ] \n',
    '{"":""}',
  ])('accepts %s', (text) => {
    expect(() => JSON.parse(text) as unknown).not.toThrow();
    expect(() => scan(text)).not.toThrow();
  });

  it('counts an array as one level and goes exactly as deep as it may', () => {
    expect(() => scan(nested(512), 512)).not.toThrow();
    expect(failure(nested(514), 512)).toMatchObject({ kind: 'depth' });
    expect(() => scan('[]', 1)).not.toThrow();
    expect(failure('[[]]', 1)).toMatchObject({ kind: 'depth', position: 1 });
    expect(() => scan('1', 0)).not.toThrow();
  });

  it('costs no stack for a million nested arrays', () => {
    expect(failure('['.repeat(1_000_000))).toMatchObject({ kind: 'depth', position: 512 });
  });

  it('gives the spans of names and values', () => {
    const text = ' { "a" : [1, 2] ,"\\u0062":{"c":null} } ';
    const json = new JsonScanner(Buffer.from(text), 512);
    const spans: string[][] = [];
    json.enterObject();
    while (json.nextMember()) {
      json.skipValue();
      spans.push([text.slice(json.nameStart, json.nameEnd), text.slice(json.valueStart, json.valueEnd)]);
    }
    json.expectEnd();
    expect(spans).toEqual([
      ['"a"', '[1, 2]'],
      ['"\\u0062"', '{"c":null}'],
    ]);
  });

  it('enters objects inside of objects and comes back to the outer one', () => {
    expect(steps('{"a":{"b":1,"c":2},"d":{}}')).toEqual(['"a"', '"b"', '"c"', '"d"']);
    expect(() => steps('{"a":{} "d":{}}')).toThrow('expected "," or "}"');
    expect(() => steps('{"a":{},}')).toThrow('expected a member name');
    expect(() => steps('{"a":{,}}')).toThrow('expected a member name');
  });

  it('refuses to be made for more levels than it has room for', () => {
    expect(() => new JsonScanner(Buffer.from('1'), 1025)).toThrow(RangeError);
  });
});
