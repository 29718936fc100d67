import { describe, expect, it } from '@jest/globals';
import { TopicPattern } from '../core/index.js';
import { definitionsOf, MessageListener } from './message-listener.decorator.js';

class Order {}

class Listeners {
  @MessageListener('order.**')
  one(): void {}

  @MessageListener(['order.*', TopicPattern.of('mail.*')], { dto: Order, whitelist: true })
  several(): void {}

  @MessageListener('a')
  @MessageListener('b', { raw: true })
  twice(): void {}

  none(): void {}
}

const said = (method: keyof Listeners): unknown =>
  definitionsOf(Listeners.prototype[method]).map(({ patterns, options }) => [patterns.map(String), options]);

describe('@MessageListener', () => {
  it('says which topics a method listens to, and how', () => {
    expect(said('one')).toEqual([[['order.**'], {}]]);
    expect(said('several')).toEqual([[['order.*', 'mail.*'], { dto: Order, whitelist: true }]]);
    expect(said('twice')).toEqual([
      [['b'], { raw: true }],
      [['a'], {}],
    ]);
    expect(said('none')).toEqual([]);
  });

  it.each<[string, unknown, object, RegExp]>([
    ['no pattern', 'a..b', {}, /pattern "a..b"/],
    ['no patterns', [], {}, /the patterns of @MessageListener .*must be one at least/],
    ['an unknown option', 'a', { dtoo: Order }, /the option dtoo of @MessageListener .*there are dto, whitelist and raw/],
    ['a DTO that is no class', 'a', { dto: 'Order' }, /the option dto .*must be a class/],
    ['raw that is no boolean', 'a', { raw: 'yes' }, /the option raw .*must be true or false/],
    ['raw with a DTO', 'a', { raw: true, dto: Order }, /the option raw .*not be given with dto/],
    ['a whitelist without a DTO', 'a', { whitelist: true }, /the option whitelist .*given with dto/],
  ])('refuses %s when the class is loaded', (_, patterns, options, message) => {
    expect(() => MessageListener(patterns as string, options as never)).toThrow(message);
  });

  it('refuses static methods, which nobody would call', () => {
    const decorate = MessageListener('a');
    expect(() => decorate(Listeners, 'create', { value: () => undefined })).toThrow(/@MessageListener of "create".*neither static/);
    expect(() => decorate(Listeners.prototype, Symbol('s'), { value: () => undefined })).toThrow(/nor a symbol/);
    expect(() => decorate(Listeners.prototype, 'got', { get: () => undefined })).toThrow(/nor an accessor/);
  });
});
