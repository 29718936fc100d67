import { describe, expect, it } from '@jest/globals';
import { messageOf } from './index.js';

describe('a message made inside the process', () => {
  it('is the message that its JSON would be', () => {
    const message = messageOf({
      topic: 'order.created',
      content: { a: [1, undefined], b: undefined },
      id: 'i',
      key: 'k',
      headers: { h: 'v' },
    });
    expect(message).toMatchObject({ topic: 'order.created', id: 'i' });
    expect(message.content.toString()).toBe('{"a":[1,null]}');
    expect(message.storedBytes(1767225600000).toString()).toBe(
      '{"topic":"order.created","id":"i","key":"k","headers":{"h":"v"},"content":{"a":[1,null]},"timestamp":1767225600000}',
    );
  });

  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level++) deep = [deep];

  it.each([
    ['a content that is not there', { topic: 't', content: undefined }, 'content', 'is missing'],
    ['a function as content', { topic: 't', content: () => 1 }, 'content', 'is missing'],
    ['null as content', { topic: 't', content: null }, 'content', 'any JSON but null'],
    ['NaN as content, which JSON does not have', { topic: 't', content: Number.NaN }, 'content', 'any JSON but null'],
    ['a content that refers to itself', { topic: 't', content: circular }, 'content', 'cannot be made JSON'],
    ['a big integer', { topic: 't', content: 1n }, 'content', 'cannot be made JSON'],
    ['a content that is too deep to be serialised', { topic: 't', content: deep }, 'content', 'cannot be made JSON'],
    ['a topic of dead letters', { topic: 'dlq.x', content: 1 }, 'topic', "the broker's own"],
    ['a wrong id', { topic: 't', content: 1, id: '' }, 'id', 'an id has'],
    ['a lone surrogate in the key', { topic: 't', content: 1, key: '\ud800' }, 'key', 'no lone surrogates'],
    ['a wrong header', { topic: 't', content: 1, headers: { 'X-A': '1' } }, 'headers', 'a header name has'],
  ])('is refused for %s as a publish would be', (_case, draft, field, reason) => {
    expect(() => messageOf(draft)).toThrow(
      expect.objectContaining({ name: 'PublishRefusedError', status: 400, field, reason: expect.stringContaining(reason) }),
    );
  });
});
