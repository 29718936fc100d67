import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { loadSettings } from './index.js';
import { renderEnvExample, renderSettingsFile } from './settings.documents.js';

const repository = new URL('../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, repository), 'utf8');

let cwd: string;

beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'mmmq-documents-'));
  mkdirSync(join(cwd, 'config'));
});

afterAll(() => rmSync(cwd, { recursive: true }));

describe('the files that show the settings', () => {
  it('are exactly what the table gives', () => {
    expect(read('config/mmmq.yaml')).toBe(renderSettingsFile());
    expect(read('.env.example')).toBe(renderEnvExample());
  });

  it('say the defaults: a start with them is a start without them', () => {
    const without = loadSettings({ cwd, env: {} });
    writeFileSync(join(cwd, 'config/mmmq.yaml'), read('config/mmmq.yaml'));
    writeFileSync(join(cwd, '.env'), read('.env.example'));
    expect(loadSettings({ cwd, env: {} })).toEqual(without);

    // The same with every line of .env.example in force.
    const variables = read('.env.example').replace(/^# ([A-Z_]+=)/gm, '$1');
    expect(variables).toMatch(/^SERVER_PORT=8080$/m);
    writeFileSync(join(cwd, '.env'), variables);
    expect(loadSettings({ cwd, env: {} })).toEqual(without);
    rmSync(join(cwd, '.env'));
  });

  it('have an example of a dispatcher that works when its comment signs are removed', () => {
    const [head, example] = read('config/mmmq.yaml').split(/(?=^ {2}# dispatchers:$)/m);
    const uncommented = `${head}${example?.replace(/^ {2}# /gm, '  ')}`;
    writeFileSync(join(cwd, 'config/mmmq.yaml'), uncommented);
    const [dispatcher] = loadSettings({ cwd, env: {} }).dispatchers;
    expect(dispatcher).toEqual({
      name: 'order-dispatcher',
      host: 'http://localhost:8081',
      patterns: ['order.**', 'payment.*'],
      timeoutMs: 30000,
      maxResends: 3,
      backoff: { initialMs: 1000, maxMs: 60000 },
    });
    expect(Object.keys(parse(uncommented).mmmq.dispatchers[0])).toHaveLength(6);

    writeFileSync(join(cwd, 'config/mmmq.yaml'), uncommented.replace(/^ {6}# (batch:| {2}max-)/gm, '      $1'));
    expect(loadSettings({ cwd, env: {} }).dispatchers).toEqual([{ ...dispatcher, batch: { maxMessages: 100, maxBytes: 1048576 } }]);
  });
});
