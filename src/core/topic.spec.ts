import { describe, expect, it } from '@jest/globals';
import { deadLetterTopic, dispatcherNameProblem, isDeadLetterTopic, isReservedName, topicProblem } from './index.js';

describe('a topic', () => {
  it.each(['order.created', 'a', 'A-1_b.c', '-', '_._', '1', '__proto__', 'constructor', 'dlq', 'dlq.order-dispatcher', 'x'.repeat(200)])(
    'may be %s',
    (topic) => {
      expect(topicProblem(topic)).toBeUndefined();
    },
  );

  it.each([
    ['', 'at least one character'],
    ['x'.repeat(201), 'at most 200 characters, this has 201'],
    ['.', 'no empty word'],
    ['..', 'no empty word'],
    ['.a', 'no empty word'],
    ['a.', 'no empty word'],
    ['a..b', 'no empty word'],
    ['a/b', 'no characters but'],
    ['a\\b', 'no characters but'],
    ['../etc', 'no characters but'],
    ['%2e%2e', 'no characters but'],
    ['a b', 'no characters but'],
    ['a\0b', 'no characters but'],
    ['a\n', 'no characters but'],
    ['주문', 'no characters but'],
    ['order.*', 'no characters but'],
  ])('is not %j, and the rule says why', (topic, rule) => {
    expect(topicProblem(topic)).toContain(rule);
  });
});

describe('the topic of dead letters', () => {
  it('is the name of the dispatcher behind dlq.', () => {
    expect(deadLetterTopic('order-dispatcher')).toBe('dlq.order-dispatcher');
    expect(isDeadLetterTopic('dlq.order-dispatcher')).toBe(true);
    expect(isDeadLetterTopic('dlq')).toBe(false);
    expect(isDeadLetterTopic('orders.dlq.x')).toBe(false);
  });

  it('is kept for the broker in every spelling, since a topic that differs in case alone would stand in its way', () => {
    expect(isReservedName('dlq.x')).toBe(true);
    expect(isReservedName('DLQ.x')).toBe(true);
    expect(isReservedName('dlq')).toBe(false);
    expect(isReservedName('dlqx.y')).toBe(false);
  });
});

describe('a dispatcher name', () => {
  it.each(['order-dispatcher', 'a.b', 'x'.repeat(100)])('may be %s', (name) => {
    expect(dispatcherNameProblem(name)).toBeUndefined();
    expect(topicProblem(deadLetterTopic(name))).toBeUndefined();
  });

  it.each([
    ['', 'a dispatcher name has at least one character'],
    ['x'.repeat(101), 'at most 100 characters'],
    ['a..b', 'no empty word'],
    ['../x', 'no characters but'],
    ['dlq.x', 'does not begin with "dlq."'],
    ['Dlq.x', 'does not begin with "dlq."'],
  ])('is not %j, and the rule says why', (name, rule) => {
    expect(dispatcherNameProblem(name)).toContain(rule);
  });
});
