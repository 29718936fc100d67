import { describe, expect, it } from '@jest/globals';
import { type DeadLetter, deadLetterOf, readStored } from './index.js';

const STORED = '{"topic":"order.created","content":{"amount": 1.0,"a":1e400},"timestamp":1}';

function deadLetter(changes: Partial<DeadLetter> = {}): DeadLetter {
  return {
    dispatcher: 'order-dispatcher',
    topic: 'order.created',
    offset: 41,
    attempts: 4,
    reason: 'NACK after 3 resends',
    answer: { status: 200, body: Buffer.from('{"acknowledgement":"NACK"}') },
    message: Buffer.from(STORED),
    ...changes,
  };
}

function contentOf(letter: DeadLetter): { answer?: { status: number; body: string }; reason: string; message: unknown } {
  const stored = deadLetterOf(letter).storedBytes(2);
  const parsed = JSON.parse(stored.toString()) as { content: ReturnType<typeof contentOf> };
  expect(Buffer.from(stored.toString())).toEqual(stored);
  return parsed.content;
}

describe('a dead letter', () => {
  it('is a message for the topic of its dispatcher, with cause, answer and the stored bytes as they are', () => {
    const message = deadLetterOf(deadLetter());
    const content =
      '{"topic":"order.created","offset":41,"attempts":4,"reason":"NACK after 3 resends",' +
      `"answer":{"status":200,"body":"{\\"acknowledgement\\":\\"NACK\\"}"},"message":${STORED}}`;
    expect(message).toMatchObject({ topic: 'dlq.order-dispatcher', id: undefined });
    expect(message.content.toString()).toBe(content);
    expect(message.storedBytes(2).toString()).toBe(`{"topic":"dlq.order-dispatcher","content":${content},"timestamp":2}`);
    expect(readStored(message.storedBytes(2))).toEqual({ topic: 'dlq.order-dispatcher', content: Buffer.from(content), timestamp: 2 });
  });

  it('has no answer where there was none', () => {
    expect(deadLetterOf(deadLetter({ answer: undefined })).content.toString()).toBe(
      `{"topic":"order.created","offset":41,"attempts":4,"reason":"NACK after 3 resends","message":${STORED}}`,
    );
  });

  it('is JSON whatever the reason is made of', () => {
    const reason = 'a "b" \\ \n \ud800 주문';
    expect(contentOf(deadLetter({ reason })).reason).toBe(reason);
  });

  it.each([
    ['4096 bytes', 'x'.repeat(4096), 'x'.repeat(4096)],
    ['one byte more', 'x'.repeat(4097), 'x'.repeat(4096)],
    ['a character of three bytes across the cut', `${'x'.repeat(4095)}주문`, 'x'.repeat(4095)],
    ['a character of four bytes across the cut', `${'x'.repeat(4093)}😀`, 'x'.repeat(4093)],
    ['a character that ends at the cut', `${'x'.repeat(4093)}주문`, `${'x'.repeat(4093)}주`],
    ['a byte order mark', '\ufeffx', '\ufeffx'],
  ])('keeps 4 KiB of the answer and splits no character: %s', (_case, body, kept) => {
    expect(contentOf(deadLetter({ answer: { status: 503, body: Buffer.from(body) } })).answer).toEqual({ status: 503, body: kept });
  });

  it('makes an answer that is no UTF-8 readable, within the same 4 KiB', () => {
    const cut = Buffer.from([0x61, 0xff, 0xe2, 0x82]);
    expect(contentOf(deadLetter({ answer: { status: 500, body: cut } })).answer?.body).toBe('a\ufffd\ufffd');
    const noise = contentOf(deadLetter({ answer: { status: 500, body: Buffer.alloc(60_000, 0xff) } })).answer?.body ?? '';
    expect(noise).toBe('\ufffd'.repeat(1365));
  });

  it.each([
    ['text', Buffer.from('hello "you"'), 'hello "you"'],
    ['nothing', Buffer.alloc(0), ''],
    ['half an object', Buffer.from('{"a":1'), '{"a":1'],
    ['two objects', Buffer.from('{}{}'), '{}{}'],
    ['no UTF-8', Buffer.from('{"a":"\xff"}', 'latin1'), '{"a":"\ufffd"}'],
    ['a byte order mark', Buffer.from('\ufeff{}'), '\ufeff{}'],
  ])('gives stored bytes that are no JSON as a string: %s', (_case, message, text) => {
    expect(contentOf(deadLetter({ message })).message).toBe(text);
  });

  it('keeps the first MiB of bytes that are no JSON, since as a string they can grow beyond what a message may have', () => {
    const stored = deadLetterOf(deadLetter({ message: Buffer.alloc(8 * 1024 * 1024, 1) })).storedBytes(1);
    expect(stored.length).toBeGreaterThan(6 * 1024 * 1024);
    expect(stored.length).toBeLessThan(7 * 1024 * 1024);
  });

  it('holds the deepest message that is accepted, and can be read itself', () => {
    const message = Buffer.from(`{"topic":"t","content":${'['.repeat(512)}${']'.repeat(512)},"timestamp":1}`);
    const letter = deadLetterOf(deadLetter({ message }));
    expect(letter.content.includes(message)).toBe(true);
    expect(readStored(letter.storedBytes(1))?.topic).toBe('dlq.order-dispatcher');
    const deeper = Buffer.from('['.repeat(600) + ']'.repeat(600));
    expect(contentOf(deadLetter({ message: deeper })).message).toBe(deeper.toString());
  });
});
