import { describe, expect, it } from '@jest/globals';
import { ConsumerModule } from './consumer.module.js';
import { consumerSettings } from './consumer.options.js';

describe('the options of ConsumerModule', () => {
  it('have their defaults', () => {
    expect(consumerSettings({}, 'here')).toEqual({
      concurrency: 32,
      maxBodyBytes: 16 * 1024 * 1024,
      noListener: 'reject',
      deduplication: undefined,
    });
  });

  it.each<[string, object, RegExp]>([
    ['an unknown one', { concurency: 1 }, /the option concurency of ConsumerModule.forRoot "1": is no option; there are path, guards,/],
    ['concurrency 0', { concurrency: 0 }, /the option concurrency .*"0": must be a whole number from 1 to 10000/],
    ['maxBodyBytes as a text', { maxBodyBytes: '1' }, /the option maxBodyBytes .*whole number from 1 to 67108864/],
    ['another noListener', { noListener: 'drop' }, /the option noListener .*"drop": must be reject, retry or acknowledge/],
    ['a deduplication that is none', { deduplication: {} }, /the option deduplication .*once\(id, work\)/],
    ['a path without a slash', { path: 'messages' }, /the option path .*"messages": must be words/],
    ['a path with a wildcard', { path: '/messages/:id' }, /the option path/],
    ['a path that ends in a slash', { path: '/messages/' }, /the option path/],
    ['guards that are no list', { guards: 'AuthGuard' }, /the option guards .*must be a list/],
  ])('refuse %s by name', (_, options, message) => {
    expect(() => ConsumerModule.forRoot(options)).toThrow(message);
  });

  it('are refused beside a factory, which is to give them', () => {
    const options = { useFactory: () => ({}), concurrency: 3 };
    expect(() => ConsumerModule.forRootAsync(options)).toThrow(/the option concurrency of ConsumerModule.forRootAsync/);
  });
});
