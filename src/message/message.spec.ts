import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { readPublish } from './index.js';

describe('the stored bytes of a message', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('take exactly one buffer', () => {
    const message = readPublish(Buffer.from('{"topic":"t","content":"주문"}'), {
      idempotencyKey: 'a',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    });
    const makers = (['alloc', 'allocUnsafe', 'allocUnsafeSlow', 'from', 'concat'] as const).map((name) => jest.spyOn(Buffer, name));
    const stored = message.storedBytes(1767225600000);
    const calls = makers.map((maker) => maker.mock.calls.length);
    jest.restoreAllMocks();
    expect(calls).toEqual([0, 1, 0, 0, 0]);
    expect(JSON.parse(stored.toString())).toMatchObject({ content: '주문', id: 'a', timestamp: 1767225600000 });
  });
});
