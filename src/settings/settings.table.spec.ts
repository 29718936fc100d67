import { describe, expect, it } from '@jest/globals';
import { SETTING_ROWS } from './settings.table.js';

describe('the table of settings', () => {
  it('names the variable of every scalar after its path', () => {
    for (const [path, row] of SETTING_ROWS) {
      const expected = path.includes('[]') ? undefined : path.toUpperCase().replace(/[.-]/g, '_');
      expect(row.variables[0]).toBe(expected);
    }
  });

  it('says of every setting in one line what it does, and has a default or an example', () => {
    for (const [, row] of SETTING_ROWS) {
      expect(row.meaning).toMatch(/^[A-Z].*[^.]$/);
      expect(row.default ?? row.example).toBeDefined();
    }
  });

  it('has the defaults that users rely on', () => {
    expect(Object.fromEntries([...SETTING_ROWS].map(([path, row]) => [path, row.default]))).toEqual({
      'server.host': '127.0.0.1',
      'server.port': 8080,
      'mmmq.broker.storage.root-dir': './data',
      'mmmq.broker.storage.reserve-bytes': 4 * 1024 * 1024,
      'mmmq.broker.segment.max-bytes': 64 * 1024 * 1024,
      'mmmq.broker.message.max-bytes': 1024 * 1024,
      'mmmq.broker.batch.max-messages': 10_000,
      'mmmq.broker.batch.max-bytes': 16 * 1024 * 1024,
      'mmmq.broker.pending.max-bytes': 64 * 1024 * 1024,
      'mmmq.dispatchers[].name': undefined,
      'mmmq.dispatchers[].host': undefined,
      'mmmq.dispatchers[].patterns': undefined,
      'mmmq.dispatchers[].timeout-ms': 30_000,
      'mmmq.dispatchers[].max-resends': 3,
      'mmmq.dispatchers[].backoff.initial-ms': 1000,
      'mmmq.dispatchers[].backoff.max-ms': 60_000,
      'mmmq.dispatchers[].batch.max-messages': undefined,
      'mmmq.dispatchers[].batch.max-bytes': 1024 * 1024,
    });
  });
});
