import { describe, expect, it } from '@jest/globals';
import { TopicPattern } from '../core/index.js';
import type { Listener } from './listener.js';
import { ListenerTable } from './listener.table.js';

const listener = (name: string, ...patterns: string[]): Listener => ({
  name,
  patterns: patterns.map((pattern) => TopicPattern.of(pattern)),
  options: {},
  call: async () => undefined,
});

describe('the table of listeners', () => {
  it('gives a topic to the listener with the most specific pattern, in whatever order they were found', () => {
    const all = [
      listener('all', '**'),
      listener('orders', 'order.**'),
      listener('one word', 'order.*'),
      listener('dead', 'dlq.**'),
      listener('exact', 'order.created'),
    ];
    for (const order of [all, all.toReversed()]) {
      const table = new ListenerTable(order);
      const of = (topic: string): string | undefined => table.listenerFor(topic)?.name;
      expect(['order.created', 'order.paid', 'order.paid.late', 'order', 'mail', 'dlq.x', 'dlq'].map(of)).toEqual([
        'exact',
        'one word',
        'orders',
        'orders',
        'all',
        'dead',
        'dead',
      ]);
    }
    expect(new ListenerTable([listener('orders', 'order.*')]).listenerFor('mail.sent')).toBeUndefined();
  });

  it('lets the patterns of one listener overlap as they like', () => {
    const table = new ListenerTable([listener('some', 'order.*', '*.created', 'order.*'), listener('all', '**')]);
    expect(table.listenerFor('order.created')?.name).toBe('some');
    expect(table.listenerFor('mail.sent')?.name).toBe('all');
  });

  it.each([
    ['order.*', 'order.*', 'order.o', 'these patterns are the same'],
    ['**.*', '*.**', 'a', 'these patterns are the same'],
    ['order.*', '*.created', 'order.created', 'neither of these is a special case of the other'],
  ])('refuses %s beside %s, and names both listeners and a topic', (one, other, topic, why) => {
    const make = (): unknown => new ListenerTable([listener('Orders.on', one), listener('Mails.on', other)]);
    expect(make).toThrow(`Orders.on ("${one}") and Mails.on ("${other}") both listen to ${topic}`);
    expect(make).toThrow(why);
  });
});
