import { describe, expect, it } from '@jest/globals';
import { traceContextOf } from './trace-context.js';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT_ID = 'b7ad6b7169203331';
const VALID = `00-${TRACE_ID}-${PARENT_ID}-01`;

function members(count: number): string {
  return Array.from({ length: count }, (_, index) => `k${index}=v`).join(',');
}

describe('a traceparent', () => {
  it.each([
    VALID,
    `00-${TRACE_ID}-${PARENT_ID}-00`,
    `00-${TRACE_ID}-${PARENT_ID}-ff`,
    `01-${TRACE_ID}-${PARENT_ID}-01`,
    `fe-${TRACE_ID}-${PARENT_ID}-01`,
    `cc-${TRACE_ID}-${PARENT_ID}-01-`,
    `cc-${TRACE_ID}-${PARENT_ID}-01-what-the-future-will-be-like`,
  ])('%s is kept as it is', (traceparent) => {
    expect(traceContextOf(traceparent, undefined)).toEqual({ traceparent });
  });

  it.each([
    ['nothing', ''],
    ['version ff', `ff-${TRACE_ID}-${PARENT_ID}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${PARENT_ID}-01`],
    ['a parent id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['capital letters', VALID.toUpperCase()],
    ['a letter that is no digit', `00-${TRACE_ID.replace('a', 'g')}-${PARENT_ID}-01`],
    ['version 00 with more behind it', `${VALID}-more`],
    ['version 00 with a dash behind it', `${VALID}-`],
    ['a later version with more but no dash', `cc-${TRACE_ID}-${PARENT_ID}-01.more`],
    ['a later version that is too short', `cc-${TRACE_ID}-${PARENT_ID}-0`],
    ['a later version that is endless', `cc-${TRACE_ID}-${PARENT_ID}-01-${'x'.repeat(10_000)}`],
    ['a later version with more that is not ASCII', `cc-${TRACE_ID}-${PARENT_ID}-01-\u00e9`],
    ['a short trace id', `00-${TRACE_ID.slice(1)}-${PARENT_ID}-01`],
    ['a long parent id', `00-${TRACE_ID}-${PARENT_ID}0-01`],
    ['white space', ` ${VALID}`],
    ['a line break', `${VALID}\n`],
    ['two of them', `${VALID}, ${VALID}`],
  ])('with %s is left out, and its tracestate with it', (_case, traceparent) => {
    expect(traceContextOf(traceparent, 'a=b')).toBeUndefined();
  });

  it('that did not come leaves its tracestate out too', () => {
    expect(traceContextOf(undefined, 'a=b')).toBeUndefined();
  });
});

describe('a tracestate', () => {
  it.each([
    'rojo=00f067aa0ba902b7',
    'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
    'a=1 , b=2,\tc=3',
    'a=1,,b=2,',
    'fw529a3039@dt=FfAAfw;x',
    '0tenant@system=1',
    'a_-*/9=!"#$%&\'()*+-./:;<>?@[\\]^_`{|}~',
    'a=x y',
    `${'k'.repeat(256)}=${'v'.repeat(255)}`,
    members(32),
    `a=${'v'.repeat(256)}`,
  ])('%j is kept as it is', (tracestate) => {
    expect(traceContextOf(VALID, tracestate)).toEqual({ traceparent: VALID, tracestate });
  });

  it.each([
    ['nothing', ''],
    ['commas alone', ' , ,'],
    ['no value', 'a'],
    ['an empty value', 'a='],
    ['no key', '=b'],
    ['a capital letter in its key', 'A=b'],
    ['a digit at the beginning of a simple key', '0a=b'],
    ['a space in its key', 'a a=b'],
    ['two systems in its key', 'a@b@c=d'],
    ['a tenant without system', 'a@=d'],
    ['a system too long', `a@${'s'.repeat(15)}=d`],
    ['a tenant too long', `${'t'.repeat(242)}@s=d`],
    ['a key too long', `${'k'.repeat(257)}=v`],
    ['a value too long', `a=${'v'.repeat(257)}`],
    ['an equals sign in its value', 'a=b=c'],
    ['a tab in its value', 'a=b\tc'],
    ['a character outside of ASCII', 'a=\u00e9'],
    ['one member too many', members(33)],
    ['one wrong member among good ones', 'a=1,B=2,c=3'],
    ['more than 512 characters', `a=${'v'.repeat(255)},b=${'v'.repeat(253)}`],
  ])('with %s is left out, and the traceparent stays', (_case, tracestate) => {
    expect(traceContextOf(VALID, tracestate)).toEqual({ traceparent: VALID });
  });
});
