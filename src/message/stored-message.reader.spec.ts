import { describe, expect, it } from '@jest/globals';
import { readPublish, readStored } from './index.js';

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('reading a stored message', () => {
  it('finds everything that a delivery needs, whether the producer or the broker wrote it', () => {
    const body = Buffer.from('{"topic":"order.created","content": {"a":1.0},"key":"k\\u00e9","headers":{"a":"1","b-c":"주문"}}');
    const message = readPublish(body, { idempotencyKey: 'i', traceparent: TRACEPARENT, tracestate: 'a="b"' });
    expect(readStored(message.storedBytes(1))).toEqual({
      topic: 'order.created',
      id: 'i',
      timestamp: 1,
      key: 'ké',
      headers: new Map([
        ['a', '1'],
        ['b-c', '주문'],
      ]),
      traceparent: TRACEPARENT,
      tracestate: 'a="b"',
      content: Buffer.from('{"a":1.0}'),
    });
  });

  it('has nothing but topic and content of the simplest message', () => {
    expect(readStored(Buffer.from('{"topic":"t","content":null}'))).toEqual({ topic: 't', content: Buffer.from('null') });
  });

  it('knows the older form of a topic, also as another program may have written it', () => {
    expect(readStored(Buffer.from('{"topic":{"id":7,"name":"t"},"content":1,"other":[{}]}'))).toEqual({
      topic: 't',
      content: Buffer.from('1'),
    });
  });

  it('leaves out what breaks its rule, so that all it gives can become a header', () => {
    const stored = {
      topic: 5,
      id: 'a\r\nb',
      key: '\u0000',
      headers: { good: 'x', 'b\n': 'x', bad: 'a\r\nx: y', number: 1, object: {} },
      traceparent: 'nonsense',
      tracestate: 'a=b',
      timestamp: 'now',
    };
    expect(readStored(Buffer.from(JSON.stringify(stored)))).toEqual({ headers: new Map([['good', 'x']]) });
    expect(readStored(Buffer.from('{"id":1,"key":null,"headers":[]}'))).toEqual({});
  });

  it.each(['-1', '1.5', '1e400', '99999999999999999999', '[1]', 'true', '"1"'])('takes %s for no time stamp', (timestamp) => {
    expect(readStored(Buffer.from(`{"timestamp":${timestamp}}`))).toEqual({});
  });

  it.each([
    ['nothing', ''],
    ['an array', '[]'],
    ['a string', '"{}"'],
    ['half an object', '{"topic":"t"'],
    ['two objects', '{}{}'],
    ['text', 'hello'],
    ['endless nesting', '{"content":'.repeat(100_000)],
  ])('gives nothing for %s', (_case, payload) => {
    expect(readStored(Buffer.from(payload))).toBeUndefined();
  });

  it('gives nothing for bytes that are not UTF-8', () => {
    expect(readStored(Buffer.from('{"topic":"\xff"}', 'latin1'))).toBeUndefined();
  });
});
