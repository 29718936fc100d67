import { isUtf8 } from 'node:buffer';
import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { JsonScanError, JsonScanner } from '../../src/message/index.js';

const DEPTH = 512;

function scans(bytes: Buffer): boolean {
  try {
    const json = new JsonScanner(bytes, DEPTH);
    json.skipValue();
    json.expectEnd();
    return true;
  } catch (error) {
    if (error instanceof JsonScanError && error.kind === 'syntax') return false;
    throw error;
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Pieces of JSON, and what is nearly a piece of it. Short, so that many rows of them are JSON. */
const pieces = [
  ['{', '}', '[', ']', ',', ':', '"', '"a"', '"":', '{}', '[]', '{"a":', ' ', '\n', '\t', '\r', '\f', '\u00a0', '\ufeff', '\u2028'],
  ['0', '1', '9', '-', '+', '.', 'e', 'E', '1.5', '-0', '1e5', 'true', 'false', 'null', 'nul', 'tru', 'NaN'],
  ['\\', '\\"', '\\u', '\\u00', '\\ud800', '\\n', '\\x', '\u0000', '\u001f', '\u007f', 'é', '😀', '/', "'"],
];
const token = fc.constantFrom(...pieces.flat());
const tokens = fc.array(token, { maxLength: 8 }).map((list) => list.join(''));
const numberLike = fc.string({ unit: fc.constantFrom('0', '1', '-', '+', '.', 'e', 'E'), minLength: 1, maxLength: 7 });
const stringLike = fc
  .string({ unit: fc.constantFrom('\\', 'u', 'a', 'F', '0', '"', 'n', 'g', 'é', '\u0000', '/'), maxLength: 10 })
  .map((text) => `"${text}"`);

/** A document with white space where it may stand. */
const document = fc
  .tuple(fc.json({ maxDepth: 5, stringUnit: 'binary' }), fc.constantFrom(undefined, 1, '\t', '\r\n'))
  .map(([text, space]) => JSON.stringify(JSON.parse(text), null, space));

/** A document with one place changed: a character taken out, put in, or exchanged, or its end missing. */
const damaged = fc
  .tuple(document, fc.nat(), token, fc.constantFrom('remove', 'insert', 'replace', 'cut'))
  .map(([text, at, piece, change]) => {
    const index = at % (text.length + 1);
    if (change === 'cut') return text.slice(0, index);
    return text.slice(0, index) + (change === 'remove' ? '' : piece) + text.slice(change === 'insert' ? index : index + 1);
  });

describe('the JSON scanner, against JSON.parse', () => {
  it.each([
    ['rows of pieces', tokens, 20_000],
    ['what looks like a number', numberLike, 5000],
    ['what looks like a string', stringLike, 5000],
    ['documents', document, 1000],
    ['documents with one place changed', damaged, 10_000],
  ])('accepts and refuses the same: %s', (_name, texts, numRuns) => {
    fc.assert(
      fc.property(texts, (text) => {
        // A lone surrogate has no bytes of its own, so what the scanner sees is the text that comes back.
        const bytes = Buffer.from(text);
        expect(scans(bytes)).toBe(parses(bytes.toString()));
      }),
      { numRuns },
    );
  });

  it('accepts and refuses the same characters everywhere: alone, in a string, behind a back-slash, as a digit of an escape', () => {
    const characters = Array.from({ length: 0x100 }, (_, code) => String.fromCharCode(code));
    const texts = characters.flatMap((c) => [
      c,
      `1${c}`,
      `"${c}"`,
      `"\\${c}"`,
      `"\\u004${c}"`,
      `{"a"${c}1}`,
      `[1${c}1]`,
      `-${c}`,
      `1.0${c}5`,
    ]);
    const differing = texts.filter((text) => scans(Buffer.from(text)) !== parses(text));
    expect(differing).toEqual([]);
  });

  it('accepts and refuses the same bytes once they are known to be UTF-8', () => {
    fc.assert(
      fc.property(document, fc.nat(), fc.integer({ min: 0, max: 255 }), (text, at, byte) => {
        const bytes = Buffer.from(text);
        bytes[at % bytes.length] = byte;
        fc.pre(isUtf8(bytes));
        expect(scans(bytes)).toBe(parses(bytes.toString()));
      }),
      { numRuns: 5000 },
    );
  });

  it('reports the members in their order, with spans that hold exactly their bytes', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 3 })),
        fc.constantFrom('', ' ', '\n\t'),
        (object, space) => {
          const members = Object.entries(object).map(([name, value]) => [JSON.stringify(name), JSON.stringify(value)] as const);
          const text = `{${space}${members.map(([name, value]) => `${name}${space}:${space}${value}${space}`).join(`,${space}`)}}`;
          const bytes = Buffer.from(text);
          const json = new JsonScanner(bytes, DEPTH);
          const found: (readonly [string, string])[] = [];
          json.enterObject();
          while (json.nextMember()) {
            json.skipValue();
            found.push([bytes.toString('utf8', json.nameStart, json.nameEnd), bytes.toString('utf8', json.valueStart, json.valueEnd)]);
          }
          json.expectEnd();
          expect(found).toEqual(members);
        },
      ),
    );
  });
});
