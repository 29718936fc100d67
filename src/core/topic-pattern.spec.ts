import { describe, expect, it } from '@jest/globals';
import { InvalidValueError, TopicPattern } from './index.js';

describe('a topic pattern', () => {
  it.each([
    ['order.**', 'order.created'],
    ['order.**', 'order'],
    ['payment.*', 'payment.done'],
    ['notification.**', 'notification.sent'],
    ['news.**', 'news'],
    ['news.**', 'news.world'],
    ['news.**', 'news.world.europe'],
    ['sports.*', 'sports.football'],
    ['**', 'a'],
    ['**', 'a.b.c'],
    ['**.**', 'a'],
    ['**.created', 'created'],
    ['**.created', 'order.item.created'],
    ['a.**.z', 'a.z'],
    ['a.**.z', 'a.z.b.z'],
    ['*.*', 'a.b'],
    ['order-*', 'order-'],
    ['order-*', 'order-1'],
    ['a*c', 'ac'],
    ['a*c', 'abcbc'],
    ['*a*b*', 'xxaxxbxx'],
    ['a?c', 'abc'],
    ['??', 'ab'],
    ['?*', 'a'],
    ['order.created', 'order.created'],
    ['dlq.**', 'dlq.order-dispatcher'],
    ['dlq.*', 'dlq.order-dispatcher'],
    ['dl?.x', 'dla.x'],
  ])('%s matches %s', (pattern, topic) => {
    expect(TopicPattern.of(pattern).matches(topic)).toBe(true);
  });

  it.each([
    ['sports.*', 'sports'],
    ['sports.*', 'sports.football.uk'],
    ['news.**', 'newspaper'],
    ['news.**', 'old.news'],
    ['*', 'a.b'],
    ['a*c', 'a.c'],
    ['a?c', 'a.c'],
    ['a?c', 'ac'],
    ['?', 'ab'],
    ['order.created', 'order.createdx'],
    ['order.created', 'Order.created'],
    ['order_created', 'order.created'],
    ['**.a', 'a.b'],
    ['**', 'dlq.order-dispatcher'],
    ['**.order-dispatcher', 'dlq.order-dispatcher'],
    ['*.*', 'dlq.order-dispatcher'],
    ['dlq*.**', 'dlq.order-dispatcher'],
    ['dl?.*', 'dlq.order-dispatcher'],
  ])('%s does not match %s', (pattern, topic) => {
    expect(TopicPattern.of(pattern).matches(topic)).toBe(false);
  });

  it.each([
    ['', 'at least one character'],
    ['a'.repeat(201), 'at most 200 characters'],
    ['a**b', '"**" stands alone in its word'],
    ['***', '"**" stands alone in its word'],
    ['order.a**', '"**" stands alone in its word'],
    ['.a', 'no empty word'],
    ['a.', 'no empty word'],
    ['a..**', 'no empty word'],
    ['a/b', 'no characters but'],
    ['[ab]', 'no characters but'],
    ['a b', 'no characters but'],
    ['(a+)+$', 'no characters but'],
  ])('cannot be %j, and the error names pattern and rule', (pattern, rule) => {
    const make = () => new TopicPattern(pattern);
    expect(make).toThrow(InvalidValueError);
    expect(make).toThrow(/^pattern "/);
    expect(make).toThrow(rule);
  });

  it('answers at once for patterns that are made to take long', () => {
    const topic = Array.from({ length: 100 }, () => 'a').join('.');
    expect(TopicPattern.of(`${'**.a.'.repeat(30)}**.b`).matches(topic)).toBe(false);
    expect(TopicPattern.of(`${'*a'.repeat(90)}*b`).matches('a'.repeat(200))).toBe(false);
    expect(TopicPattern.of(`${'**.*a*a.'.repeat(20)}b`).matches(`${'aaaa.'.repeat(39)}aaaa`)).toBe(false);
  });

  it('is made by the constructor as well, as in the first version', () => {
    expect(new TopicPattern('order.*').matches('order.created')).toBe(true);
    expect(String(new TopicPattern('order.*'))).toBe('order.*');
  });
});
