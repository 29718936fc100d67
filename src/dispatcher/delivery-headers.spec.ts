import { describe, expect, it } from '@jest/globals';
import { batchHeaders, deliveryHeaders, messageHeaders } from './delivery-headers.js';

const DELIVERY = { dispatcher: 'order-dispatcher', topic: 'order.created', offset: 41, attempt: 2 };
const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

function headersOf(members: object): Record<string, string> {
  return messageHeaders(Buffer.from(JSON.stringify({ topic: 'order.created', content: 1, ...members })));
}

describe('the headers of every delivery', () => {
  it('say which send of which message this is', () => {
    expect(deliveryHeaders(DELIVERY)).toEqual({
      'content-type': 'application/json',
      'mmmq-dispatcher': 'order-dispatcher',
      'mmmq-topic': 'order.created',
      'mmmq-offset': '41',
      'mmmq-attempt': '2',
    });
  });
});

describe('the headers of a batch', () => {
  it('say how many messages it has', () => {
    expect(batchHeaders(7)).toEqual({ 'mmmq-count': '7' });
  });
});

describe('the headers of a message', () => {
  it('are none where it has nothing to say', () => {
    expect(headersOf({})).toEqual({});
  });

  it('carry id, key, headers and trace where the message has them', () => {
    const members = {
      id: 'order-1',
      key: 'customer-7',
      headers: { region: 'eu', 'x-kind': 'b2b' },
      traceparent: TRACEPARENT,
      tracestate: 'vendor=1',
    };
    expect(headersOf(members)).toEqual({
      'mmmq-message-id': 'order-1',
      'mmmq-key': 'customer-7',
      'mmmq-header-region': 'eu',
      'mmmq-header-x-kind': 'b2b',
      traceparent: TRACEPARENT,
      tracestate: 'vendor=1',
    });
  });

  it.each([
    ['a b', 'a%20b'],
    ['say "yes"', 'say%20%22yes%22'],
    ['100%', '100%25'],
    ['Zürich', 'Z%C3%BCrich'],
    ['주문', '%EC%A3%BC%EB%AC%B8'],
    ['🙂', '%F0%9F%99%82'],
    ["!#$&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~", "!#$&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~"],
  ])('percent-encode %s in key and header values', (plain, encoded) => {
    expect(headersOf({ key: plain, headers: { name: plain } })).toMatchObject({ 'mmmq-key': encoded, 'mmmq-header-name': encoded });
    expect(decodeURIComponent(encoded)).toBe(plain);
  });

  it('keep an empty header value', () => {
    expect(headersOf({ headers: { empty: '' } })).toMatchObject({ 'mmmq-header-empty': '' });
  });

  it.each([
    ['an id with a line break', { id: 'a\r\nmmmq-attempt: 9' }],
    ['an id that is not ASCII', { id: '주문' }],
    ['an id that is no string', { id: 7 }],
    ['a traceparent that is none', { traceparent: 'ünknown' }],
    ['a header name that is none', { headers: { 'a b': 'x', 'c\r\n': 'x' } }],
    ['headers that are no object', { headers: ['a'] }],
    ['a key with a control character', { key: 'a\u0000b' }],
  ])('leave out %s, which another program wrote', (_what, members) => {
    expect(headersOf(members)).toEqual({});
  });

  it('are none of bytes that are no JSON object', () => {
    expect(messageHeaders(Buffer.from([0xff, 0x00]))).toEqual({});
    expect(messageHeaders(Buffer.from('[1]'))).toEqual({});
  });
});
