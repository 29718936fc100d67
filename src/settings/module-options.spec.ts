import { describe, expect, it } from '@jest/globals';
import { resolve } from 'node:path';
import { brokerSettings, dispatcherSettings, InvalidSettingsError, type BrokerOptions, type DispatcherDefinition } from './index.js';

const MiB = 1024 * 1024;

function problems(action: () => unknown): string[] {
  try {
    action();
  } catch (error) {
    if (error instanceof InvalidSettingsError) return error.message.split('\n').slice(1);
    throw error;
  }
  throw new Error('The options were taken.');
}

const broker = (options: unknown) => brokerSettings(options as BrokerOptions, 'BrokerModule.forRoot');
const dispatchers = (definitions: unknown) => dispatcherSettings(definitions as DispatcherDefinition[], 'DispatcherModule.forRoot');
const orders: DispatcherDefinition = { name: 'order-dispatcher', host: 'http://localhost:8081', patterns: ['order.**', 'payment.*'] };

describe('the options of a broker', () => {
  it('have their defaults where they are left out or undefined, and an absolute root directory', () => {
    const expected = {
      storage: { rootDir: resolve('./data'), reserveBytes: 4 * MiB },
      segment: { maxBytes: 64 * MiB },
      message: { maxBytes: MiB },
      batch: { maxMessages: 10_000, maxBytes: 16 * MiB },
      pending: { maxBytes: 64 * MiB },
    };
    expect(broker({})).toEqual(expected);
    expect(broker({ storage: undefined, segment: { maxBytes: undefined } })).toEqual(expected);
  });

  it('override the defaults one by one', () => {
    const settings = brokerSettings({ storage: { rootDir: 'messages' }, segment: { maxBytes: 4096 } }, 'BrokerModule.forRoot');
    expect(settings).toMatchObject({ storage: { rootDir: resolve('messages') }, segment: { maxBytes: 4096 }, message: { maxBytes: MiB } });
  });

  it('are refused by the rules of the file, named as they are spelled', () => {
    const options = {
      storage: { rootDir: '' },
      segment: { maxBytes: 0, 'max-bytes': 1 },
      pending: { maxBytes: 7 },
      message: { maxBytes: 8 },
      group: 5,
    };
    expect(problems(() => broker(options))).toEqual([
      '- group = 5: is not a setting; here are: storage, segment, message, batch, pending (BrokerModule.forRoot)',
      '- storage.rootDir = "": must be a path, neither blank nor with control characters (BrokerModule.forRoot)',
      '- segment."max-bytes" = 1: is not a setting; here are: maxBytes (BrokerModule.forRoot)',
      '- segment.maxBytes = 0: must be a whole number from 1 to 1099511627776 (BrokerModule.forRoot)',
      '- pending.maxBytes = 7: must be at least message.maxBytes, which is 8 (BrokerModule.forRoot)',
      '- pending.maxBytes = 7: must be at least batch.maxBytes, which is 16777216 (BrokerModule.forRoot)',
    ]);
  });

  it.each([
    [5, '- options = 5: must be a group of settings (BrokerModule.forRoot)'],
    [[], '- options = []: must be a group of settings (BrokerModule.forRoot)'],
    [{ segment: { maxBytes: 5n } }, '- segment.maxBytes = 5: must be a whole number from 1 to 1099511627776 (BrokerModule.forRoot)'],
    [{ segment: [5n] }, '- segment = ["5"]: must be a group of settings (BrokerModule.forRoot)'],
    [{ segment: () => 5 }, '- segment = a function: must be a group of settings (BrokerModule.forRoot)'],
    [
      { toString: () => 'x' },
      '- "toString" = a function: is not a setting; here are: storage, segment, message, batch, pending (BrokerModule.forRoot)',
    ],
    [
      JSON.parse('{"__proto__":{"segment":5}}'),
      '- "__proto__" = {"segment":5}: is not a setting; here are: storage, segment, message, batch, pending (BrokerModule.forRoot)',
    ],
  ])('are refused as what they are: %p', (options, problem) => {
    expect(problems(() => broker(options))).toEqual([problem]);
  });

  it('are refused where they contain themselves', () => {
    const options: Record<string, unknown> = {};
    options['segment'] = options;
    expect(problems(() => broker(options))).toEqual([
      '- segment = a value that contains itself: must be a group of settings (BrokerModule.forRoot)',
    ]);
  });
});

describe('the definitions of dispatchers', () => {
  it('have their defaults where members are left out or undefined', () => {
    expect(dispatcherSettings([orders, { ...orders, name: 'b', timeoutMs: undefined, backoff: { maxMs: 5000 } }], 'x')).toEqual([
      { ...orders, timeoutMs: 30000, maxResends: 3, backoff: { initialMs: 1000, maxMs: 60000 } },
      { ...orders, name: 'b', timeoutMs: 30000, maxResends: 3, backoff: { initialMs: 1000, maxMs: 5000 } },
    ]);
  });

  it('may have batches, which are left out otherwise', () => {
    const [plain, batching] = dispatcherSettings([orders, { ...orders, name: 'b', batch: { maxMessages: 100, maxBytes: undefined } }], 'x');
    expect(plain?.batch).toBeUndefined();
    expect(batching?.batch).toEqual({ maxMessages: 100, maxBytes: MiB });
    expect(problems(() => dispatchers([{ ...orders, batch: { maxBytes: 5 } }]))).toEqual([
      '- dispatchers[0].batch.maxMessages: is missing; it must be a whole number from 1 to 1000 (DispatcherModule.forRoot)',
    ]);
  });

  it('may be none', () => {
    expect(dispatchers([])).toEqual([]);
  });

  it('may be instances of a class', () => {
    class Definition {
      readonly name = 'audit';
      readonly host = 'http://localhost';
      readonly patterns = ['**'];
    }
    expect(dispatchers([new Definition()])).toMatchObject([{ name: 'audit', patterns: ['**'] }]);
  });

  it('are refused by the rules of the file, named by their place in the list', () => {
    const definitions = [
      { ...orders, timeoutMs: '30s', backoff: { maxMs: 1 } },
      { ...orders, name: 'Order-Dispatcher', patterns: ['a', 'b..c'] },
    ];
    expect(problems(() => dispatchers(definitions))).toEqual([
      '- dispatchers[0].timeoutMs = "30s": must be a whole number from 1 to 2147483647 (DispatcherModule.forRoot)',
      expect.stringMatching(/^- dispatchers\[1\]\.patterns\[1\] = "b\.\.c": .+ \(DispatcherModule\.forRoot\)$/),
      '- dispatchers[0].backoff.maxMs = 1: must be at least dispatchers[0].backoff.initialMs, which is 1000 (DispatcherModule.forRoot)',
      '- dispatchers[1].name = "Order-Dispatcher": must differ from dispatchers[0].name, also when case is ignored (DispatcherModule.forRoot)',
    ]);
  });

  it('are refused where they are no list', () => {
    expect(problems(() => dispatchers(orders))[0]).toMatch(/^- dispatchers = \{"name":.*: must be a list of groups of settings \(Disp/);
  });
});
