import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ErrorCode, MmmqError } from '../core/index.js';
import { InvalidSettingsError, loadSettings, type Settings } from './index.js';

let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'mmmq-settings-'));
});

afterEach(() => rmSync(cwd, { recursive: true }));

const DEFAULT_FILE = 'config/mmmq.yaml';

function write(file: string, content: string | Buffer): string {
  const path = join(cwd, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

/** Loads with `content` as config/mmmq.yaml. */
function load(content: string | Buffer, env: Record<string, string> = {}): Settings {
  write(DEFAULT_FILE, content);
  return loadSettings({ cwd, env });
}

function refused(action: () => unknown): InvalidSettingsError {
  try {
    action();
  } catch (error) {
    if (error instanceof InvalidSettingsError) return error;
    throw error;
  }
  throw new Error('The settings were taken.');
}

/** The lines of the refusal, one per problem, with the working directory left out. */
function refusal(action: () => unknown): string[] {
  const { message, problems } = refused(action);
  const [head, ...lines] = message.replaceAll(`${cwd}/`, '').split('\n');
  expect(head).toBe('The settings cannot be used; nothing was started.');
  expect(lines).toHaveLength(problems.length);
  return lines.map((line) => line.replace(/^- /, ''));
}

function dispatchers(...definitions: string[]): string {
  return `mmmq:\n  dispatchers:\n${definitions.map((definition) => `    - {${definition}}\n`).join('')}`;
}

/** A dispatcher with what is given instead of, or beside, valid members. */
function dispatcher(members: string): string {
  const given = members.split(':', 1)[0];
  const valid = ['name: billing', 'host: http://localhost:8081', 'patterns: [order.**]'];
  return [...valid.filter((member) => !member.startsWith(`${given}:`)), members].join(', ');
}

const defaults = {
  server: { host: '127.0.0.1', port: 8080 },
  broker: {
    segment: { maxBytes: 67108864 },
    message: { maxBytes: 1048576 },
    batch: { maxMessages: 10000, maxBytes: 16777216 },
    pending: { maxBytes: 67108864 },
  },
  dispatchers: [],
};

describe('loading the settings', () => {
  it('gives every default where there is no file and no variable', () => {
    expect(loadSettings({ cwd, env: {} })).toEqual({
      ...defaults,
      broker: { ...defaults.broker, storage: { rootDir: join(cwd, 'data'), reserveBytes: 4194304 } },
    });
  });

  it.each([
    ['an empty file', ''],
    ['a file of comments', '# nothing\n\n# at all\n'],
    ['an empty document', '---\n...\n'],
    ['a byte order mark alone', '\uFEFF'],
    ['groups without content', 'server:\nmmmq:\n  broker:\n    segment:\n  dispatchers:\n'],
    ['mmmq without content', 'mmmq:\n'],
  ])('gives every default for %s', (_what, content) => {
    expect(load(content)).toMatchObject(defaults);
  });

  it('reads every setting of a file', () => {
    const settings = load(`
server: { host: 0.0.0.0, port: 0 }
mmmq:
  broker:
    storage: { root-dir: /srv/messages, reserve-bytes: 0 }
    segment: { max-bytes: 1 }
    message: { max-bytes: 8388608 }
    batch: { max-messages: 1, max-bytes: 8388608 }
    pending: { max-bytes: 8388608 }
  dispatchers:
    - name: order-dispatcher
      host: https://orders.example/base
      patterns: [order.**, payment.*]
      timeout-ms: 1
      max-resends: 0
      backoff: { initial-ms: 5, max-ms: 5 }
      batch: { max-messages: 1000, max-bytes: 1 }
    - { name: audit, host: "http://[::1]:9000", patterns: ["**"] }
    - { name: archive, host: "http://localhost:9001", patterns: ["**"], batch: { max-messages: 1 } }
`);
    expect(settings).toEqual({
      server: { host: '0.0.0.0', port: 0 },
      broker: {
        storage: { rootDir: '/srv/messages', reserveBytes: 0 },
        segment: { maxBytes: 1 },
        message: { maxBytes: 8388608 },
        batch: { maxMessages: 1, maxBytes: 8388608 },
        pending: { maxBytes: 8388608 },
      },
      dispatchers: [
        {
          name: 'order-dispatcher',
          host: 'https://orders.example/base',
          patterns: ['order.**', 'payment.*'],
          timeoutMs: 1,
          maxResends: 0,
          backoff: { initialMs: 5, maxMs: 5 },
          batch: { maxMessages: 1000, maxBytes: 1 },
        },
        {
          name: 'audit',
          host: 'http://[::1]:9000',
          patterns: ['**'],
          timeoutMs: 30000,
          maxResends: 3,
          backoff: { initialMs: 1000, maxMs: 60000 },
        },
        {
          name: 'archive',
          host: 'http://localhost:9001',
          patterns: ['**'],
          timeoutMs: 30000,
          maxResends: 3,
          backoff: { initialMs: 1000, maxMs: 60000 },
          batch: { maxMessages: 1, maxBytes: 1048576 },
        },
      ],
    });
  });

  it('takes "batch:" without content as if it were not there', () => {
    expect(load(dispatchers(dispatcher('batch:'))).dispatchers[0]?.batch).toBeUndefined();
  });

  it('resolves a relative root directory against the working directory', () => {
    expect(load('mmmq: { broker: { storage: { root-dir: ../messages } } }').broker.storage.rootDir).toBe(join(cwd, '../messages'));
  });

  it('reads numbers as YAML 1.2 does, also under a directive for an older version', () => {
    expect(load('%YAML 1.1\n---\nserver: { port: 010 }\n').server.port).toBe(10);
    expect(load('server: { port: 0x50 }').server.port).toBe(80);
    expect(load('server: { port: 8.08e3 }').server.port).toBe(8080);
  });

  it('follows aliases', () => {
    const content = 'mmmq:\n  broker:\n    segment: &limit { max-bytes: 4194304 }\n    message: *limit\n';
    expect(load(content).broker.message.maxBytes).toBe(4194304);
  });
});

describe('the environment', () => {
  it('overrides every scalar key of the file', () => {
    const content = 'server: { host: localhost, port: 1 }\nmmmq: { broker: { segment: { max-bytes: 2 } } }';
    const settings = load(content, {
      SERVER_HOST: '::',
      SERVER_PORT: '9090',
      MMMQ_BROKER_STORAGE_ROOT_DIR: 'elsewhere',
      MMMQ_BROKER_SEGMENT_MAX_BYTES: '3',
      MMMQ_BROKER_MESSAGE_MAX_BYTES: '4',
      MMMQ_BROKER_BATCH_MAX_MESSAGES: '6',
      MMMQ_BROKER_BATCH_MAX_BYTES: '5',
      MMMQ_BROKER_PENDING_MAX_BYTES: '5',
    });
    expect(settings).toMatchObject({
      server: { host: '::', port: 9090 },
      broker: {
        storage: { rootDir: join(cwd, 'elsewhere') },
        segment: { maxBytes: 3 },
        message: { maxBytes: 4 },
        batch: { maxMessages: 6, maxBytes: 5 },
        pending: { maxBytes: 5 },
      },
    });
  });

  it('takes PORT only where SERVER_PORT is not set', () => {
    expect(loadSettings({ cwd, env: { PORT: '3000' } }).server.port).toBe(3000);
    expect(loadSettings({ cwd, env: { PORT: '3000', SERVER_PORT: '4000' } }).server.port).toBe(4000);
  });

  it('fills a group that the file leaves empty', () => {
    expect(load('server:\nmmmq:\n', { SERVER_PORT: '1', MMMQ_BROKER_SEGMENT_MAX_BYTES: '7' })).toMatchObject({
      server: { port: 1 },
      broker: { segment: { maxBytes: 7 } },
    });
  });

  it('leaves a group of the wrong type to its own refusal', () => {
    expect(refusal(() => load('server: 5', { SERVER_PORT: '1' }))).toEqual([
      'server = 5: must be a group of settings (config/mmmq.yaml:1)',
    ]);
  });

  it('wins over .env, which wins over the file', () => {
    write('.env', 'SERVER_HOST=from-env-file\nSERVER_PORT=2\nOTHER=x\n');
    expect(load('server: { host: from-file, port: 3 }', { SERVER_PORT: '1' }).server).toEqual({ host: 'from-env-file', port: 1 });
  });

  it.each(['0x10', '1e3', '8_0', ' 80', '80 ', '+80', '-1', '080', '80.0', '65536', '99999999999999999999999', 'true'])(
    'refuses the port %j',
    (port) => {
      const [line, ...others] = refusal(() => loadSettings({ cwd, env: { SERVER_PORT: port } }));
      expect(others).toEqual([]);
      expect(line).toMatch(/^server\.port = .+: must be a whole number from 0 to 65535 \(environment variable SERVER_PORT\)$/);
    },
  );

  it('is refused where a variable is empty', () => {
    write('.env', 'MMMQ_BROKER_STORAGE_ROOT_DIR=\n');
    expect(refusal(() => loadSettings({ cwd, env: { SERVER_HOST: '', PORT: '', MMMQ_CONFIG_FILE: '' } }))).toEqual([
      'MMMQ_CONFIG_FILE = "": must not be empty; unset the variable to do without it (environment variable MMMQ_CONFIG_FILE)',
      'server.host = "": must not be empty; unset the variable to do without it (environment variable SERVER_HOST)',
      'server.port = "": must not be empty; unset the variable to do without it (environment variable PORT)',
      'mmmq.broker.storage.root-dir = "": must not be empty; unset the variable to do without it (MMMQ_BROKER_STORAGE_ROOT_DIR in .env)',
    ]);
  });

  it('is refused where a variable with our prefix is unknown, in .env as well', () => {
    write('.env', 'MMMQ_BROKER_SEGMENT_MAXBYTES=5\n');
    const [first, second, ...others] = refusal(() => loadSettings({ cwd, env: { MMMQ_DISPATCHERS: 'a'.repeat(500) } }));
    expect(first).toContain('MMMQ_BROKER_SEGMENT_MAXBYTES = "5": is no variable of mmmq; there are: MMMQ_CONFIG_FILE, ');
    expect(first).toContain('(MMMQ_BROKER_SEGMENT_MAXBYTES in .env)');
    expect(second).toMatch(/^MMMQ_DISPATCHERS = "a{99}…: is no variable of mmmq; .+ \(environment variable MMMQ_DISPATCHERS\)$/);
    expect(others).toEqual([]);
  });
});

describe('finding the settings file', () => {
  it('takes the one that MMMQ_CONFIG_FILE names instead of the default one', () => {
    write('config/mmmq.yaml', 'server: { port: 1 }');
    write('other/settings.yaml', 'server: { port: 2 }');
    expect(loadSettings({ cwd, env: { MMMQ_CONFIG_FILE: 'other/settings.yaml' } }).server.port).toBe(2);
    expect(loadSettings({ cwd, env: { MMMQ_CONFIG_FILE: join(cwd, 'other/settings.yaml') } }).server.port).toBe(2);
  });

  it('takes the one that .env names', () => {
    write('.env', 'MMMQ_CONFIG_FILE=other.yaml');
    write('other.yaml', 'server: { port: 2 }');
    expect(loadSettings({ cwd, env: {} }).server.port).toBe(2);
  });

  it('is refused where the named file is not there or a directory', () => {
    expect(refusal(() => loadSettings({ cwd, env: { MMMQ_CONFIG_FILE: 'gone.yaml' } }))).toEqual([
      'MMMQ_CONFIG_FILE = "gone.yaml": must name a YAML file in UTF-8; gone.yaml is not there (environment variable MMMQ_CONFIG_FILE)',
    ]);
    write('.env', 'MMMQ_CONFIG_FILE=./folder');
    mkdirSync(join(cwd, 'folder'));
    expect(refusal(() => loadSettings({ cwd, env: {} }))).toEqual([
      'MMMQ_CONFIG_FILE = "./folder": must name a YAML file in UTF-8; folder is a directory (MMMQ_CONFIG_FILE in .env)',
    ]);
  });

  it('is refused where the default file is a directory, cannot be read or is not UTF-8', () => {
    mkdirSync(join(cwd, DEFAULT_FILE), { recursive: true });
    expect(refusal(() => loadSettings({ cwd, env: {} }))).toEqual([
      'settings file: must be a YAML file in UTF-8; it is a directory (config/mmmq.yaml)',
    ]);
    rmSync(join(cwd, DEFAULT_FILE), { recursive: true });
    symlinkSync('mmmq.yaml', join(cwd, DEFAULT_FILE));
    expect(refusal(() => loadSettings({ cwd, env: {} }))[0]).toMatch(
      /^settings file: must be a YAML file in UTF-8; it cannot be read: ELOOP.* \(config\/mmmq\.yaml\)$/,
    );
    rmSync(join(cwd, DEFAULT_FILE));
    expect(refusal(() => load(Buffer.from('server: { host: caf\xe9 }', 'latin1')))).toEqual([
      'settings file: must be a YAML file in UTF-8; it is not UTF-8 (config/mmmq.yaml)',
    ]);
  });

  it('is refused where .env is a directory or not UTF-8', () => {
    write('.env', Buffer.from([0x41, 0x3d, 0xff]));
    expect(refusal(() => loadSettings({ cwd, env: {} }))).toEqual(['.env: must be a file of variables in UTF-8; it is not UTF-8 (.env)']);
    rmSync(join(cwd, '.env'));
    mkdirSync(join(cwd, '.env'));
    expect(refusal(() => loadSettings({ cwd, env: {} }))).toEqual(['.env: must be a file of variables in UTF-8; it is a directory (.env)']);
  });
});

describe('a file that is no settings file', () => {
  it.each([
    ['an open bracket', 'server: {\n  port: 1\nmmmq: 5', /^settings file: cannot be read as YAML 1\.2: .+ \(config\/mmmq\.yaml:\d\)$/],
    ['a tab for indentation', 'server:\n\tport: 1', /^settings file: cannot be read as YAML 1\.2: .*[Tt]ab.* \(config\/mmmq\.yaml:2\)$/],
    [
      'two documents',
      'server: {}\n---\nserver: {}',
      /^settings file: cannot be read as YAML 1\.2: .*multiple documents.* \(config\/mmmq\.yaml:2\)$/,
    ],
    ['a key that is a list', '? [a]\n: 5', /^settings file: cannot be read as YAML 1\.2: .+ \(config\/mmmq\.yaml:1\)$/],
    ['a tag', 'server:\n  port: !!binary aGk=', /^settings file: cannot be read as YAML 1\.2: .*tag.* \(config\/mmmq\.yaml:2\)$/],
    ['a list', '- server\n', /^settings file: must be groups of settings, beginning with "server:" or "mmmq:" \(config\/mmmq\.yaml:1\)$/],
    ['a word', 'server', /^settings file: must be groups of settings, .+ \(config\/mmmq\.yaml:1\)$/],
    [
      'an alias to nothing',
      'server: *nowhere',
      /^settings file: has an alias that cannot be followed \(put a pattern that begins with \* in quotes\): .+ \(config\/mmmq\.yaml\)$/,
    ],
  ])('is refused with its line: %s', (_what, content, line) => {
    for (const found of refusal(() => load(content))) expect(found).toMatch(line);
  });

  it('is refused where its brackets are nested without end', () => {
    expect(refusal(() => load(`server: ${'['.repeat(3000)}${']'.repeat(3000)}`))).toEqual([
      'settings file: cannot be read as YAML 1.2: Maximum call stack size exceeded (config/mmmq.yaml:1)',
    ]);
  });

  it('is refused where aliases multiply without bound', () => {
    const levels = Array.from({ length: 9 }, (_none, level) => `a${level + 1}: &a${level + 1} [${Array(9).fill(`*a${level}`).join(', ')}]`);
    expect(refusal(() => load(`a0: &a0 [x]\n${levels.join('\n')}\n`))).toEqual([
      'settings file: has an alias that cannot be followed (put a pattern that begins with * in quotes): Excessive alias count indicates a resource exhaustion attack (config/mmmq.yaml)',
    ]);
  });

  it('is refused where a value contains itself', () => {
    expect(refusal(() => load('mmmq: &m\n  broker: *m\nserver: &s { host: *s }'))).toEqual([
      'server.host = a value that contains itself: must be a host name or an IP address, without protocol and port (config/mmmq.yaml:3)',
      'mmmq.broker = a value that contains itself: must be a group of settings (config/mmmq.yaml:2)',
    ]);
  });

  it('is refused where a value is nested without end', () => {
    const [line] = refusal(() => load(`server: { host: ${'['.repeat(200)}${']'.repeat(200)} }`));
    expect(line).toContain('server.host = [[[[');
    expect(line).toContain('must be a host name');
  });

  it('names a key that is given twice, with the line of the second, and goes on with the rest', () => {
    expect(refusal(() => load('server:\n  port: 1\n  port: 2\nmmmq: 7\n'))).toEqual([
      'port: is given twice in one group; keep one of the two (config/mmmq.yaml:3)',
      'mmmq = 7: must be a group of settings (config/mmmq.yaml:4)',
    ]);
  });
});

describe('an unknown key', () => {
  it.each([
    ['at the top', 'srever: { port: 1 }', 'srever = {"port":1}: is not a setting; here are: server, mmmq'],
    ['of a group', 'mmmq: { borker: {} }', 'mmmq.borker = {}: is not a setting; here are: broker, dispatchers'],
    ['that is a path', 'mmmq.broker.segment.max-bytes: 5', '"mmmq.broker.segment.max-bytes" = 5: is not a setting; here are: server, mmmq'],
    [
      'in the spelling of code',
      'mmmq: { broker: { segment: { maxBytes: 5 } } }',
      'mmmq.broker.segment."maxBytes" = 5: is not a setting; here are: max-bytes',
    ],
    [
      'that later versions may have',
      'mmmq: { broker: { cache: { max-bytes: 5 } } }',
      'mmmq.broker.cache = {"max-bytes":5}: is not a setting; here are: storage, segment, message, batch, pending',
    ],
    [
      'of a dispatcher',
      dispatchers(dispatcher('retry: { max: 1 }')),
      'mmmq.dispatchers[0].retry = {"max":1}: is not a setting; here are: name, host, patterns, timeout-ms, max-resends, backoff, batch',
    ],
    [
      'of the batches of a dispatcher',
      dispatchers(dispatcher('batch: { max-messages: 1, wait-ms: 5 }')),
      'mmmq.dispatchers[0].batch.wait-ms = 5: is not a setting; here are: max-messages, max-bytes',
    ],
    ['that every object has', 'constructor: 5', '"constructor" = 5: is not a setting; here are: server, mmmq'],
    ['that becomes one', 'server: { to-string: 5 }', 'server."to-string" = 5: is not a setting; here are: host, port'],
    ['with a number behind its hyphen', 'server: { port-1: 5 }', 'server."port-1" = 5: is not a setting; here are: host, port'],
    ['that is empty', '"": 5', '"" = 5: is not a setting; here are: server, mmmq'],
    ['for merging', 'server: { <<: { port: 1 } }', 'server."<<" = {"port":1}: is not a setting; here are: host, port'],
  ])('is refused %s', (_where, content, line) => {
    const [found, ...others] = refusal(() => load(content));
    expect(others).toEqual([]);
    expect(found).toMatch(/ \(config\/mmmq\.yaml:\d\)$/);
    expect(found?.replace(/ \([^(]*\)$/, '')).toBe(line);
  });

  it('named __proto__ is refused and pollutes nothing', () => {
    const content = '__proto__: { polluted: true }\nserver:\n  __proto__: { port: 5 }\n';
    expect(refusal(() => load(content))).toEqual([
      '"__proto__" = {"polluted":true}: is not a setting; here are: server, mmmq (config/mmmq.yaml:1)',
      'server."__proto__" = {"port":5}: is not a setting; here are: host, port (config/mmmq.yaml:3)',
    ]);
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('a value that breaks its rule', () => {
  const host = 'must be a host name or an IP address, without protocol and port';
  const path = 'must be a path, neither blank nor with control characters';
  const upToTib = 'must be a whole number from 1 to 1099511627776';
  const group = 'must be a group of settings';

  it.each([
    ['server', 'host', '""', '""', host],
    ['server', 'host', '5', '5', host],
    ['server', 'host', '~', 'null', host],
    ['server', 'host', 'http://localhost', '"http://localhost"', host],
    ['server', 'host', '"localhost:8080"', '"localhost:8080"', host],
    ['server', 'host', '[::1]', '["::1"]', host],
    ['server', 'port', '-1', '-1', 'must be a whole number from 0 to 65535'],
    ['server', 'port', '65536', '65536', 'must be a whole number from 0 to 65535'],
    ['server', 'port', '80.5', '80.5', 'must be a whole number from 0 to 65535'],
    ['server', 'port', '"80"', '"80"', 'must be a whole number from 0 to 65535'],
    ['server', 'port', '.nan', 'NaN', 'must be a whole number from 0 to 65535'],
    ['server', 'port', '[80]', '[80]', 'must be a whole number from 0 to 65535'],
    ['server', 'port', '', 'null', 'must be a whole number from 0 to 65535'],
    ['mmmq.broker.storage', 'root-dir', '""', '""', path],
    ['mmmq.broker.storage', 'root-dir', '" "', '" "', path],
    ['mmmq.broker.storage', 'root-dir', '"a\\0b"', '"a\\u0000b"', path],
    ['mmmq.broker.storage', 'root-dir', 'true', 'true', path],
    ['mmmq.broker.segment', 'max-bytes', '0', '0', upToTib],
    ['mmmq.broker.segment', 'max-bytes', '1099511627777', '1099511627777', upToTib],
    ['mmmq.broker.segment', 'max-bytes', '64 MiB', '"64 MiB"', upToTib],
    ['mmmq.broker.segment', 'max-bytes', '.inf', 'Infinity', upToTib],
    ['mmmq.broker.message', 'max-bytes', '0', '0', 'must be a whole number from 1 to 8388608'],
    ['mmmq.broker.message', 'max-bytes', '8388609', '8388609', 'must be a whole number from 1 to 8388608'],
    [
      'mmmq.broker.pending',
      'max-bytes',
      '1099511627777',
      '1099511627777',
      `${upToTib}, not less than the largest message and the largest batch`,
    ],
    ['mmmq.broker', 'segment', '[{ max-bytes: 5 }]', '[{"max-bytes":5}]', group],
    ['mmmq.broker', 'segment', '64', '64', group],
    ['mmmq', 'broker', '[]', '[]', group],
    ['mmmq', 'dispatchers', '{ name: a }', '{"name":"a"}', 'must be a list of groups of settings'],
    ['mmmq', 'dispatchers', 'none', '"none"', 'must be a list of groups of settings'],
  ])('is refused: %s %s: %s', (groups, key, yaml, value, rule) => {
    const names = groups.split('.');
    const content = [...names.map((name, depth) => `${'  '.repeat(depth)}${name}:`), `${'  '.repeat(names.length)}${key}: ${yaml}`].join(
      '\n',
    );
    expect(refusal(() => load(content))).toEqual([`${groups}.${key} = ${value}: ${rule} (config/mmmq.yaml:${names.length + 1})`]);
  });

  it.each([
    ['name: 5', 'name = 5: must be a name spelled as a topic is, of at most 100 characters, not beginning with "dlq."'],
    ['name: dlq.orders', expect.stringMatching(/^name = "dlq\.orders": .*dlq\./)],
    ['name: a..b', expect.stringMatching(/^name = "a\.\.b": .+/)],
    [`name: ${'a'.repeat(101)}`, expect.stringMatching(/^name = "a{99}…: .*100.*/)],
    ['host: localhost', expect.stringMatching(/^host = "localhost": .*http:\/\/.*/)],
    ['host: "http://user:secret@localhost"', expect.stringMatching(/^host = "http:\/\/user:secret@localhost": .*credentials.*/)],
    ['host: [http://localhost]', 'host = ["http://localhost"]: must be the http:// or https:// URL of a consumer'],
    ['patterns: order.**', 'patterns = "order.**": must be a list of topic patterns, at least one'],
    ['patterns: []', 'patterns = []: must be a list of topic patterns, at least one'],
    ['patterns: [a, b**]', expect.stringMatching(/^patterns\[1\] = "b\*\*": .+/)],
    ['patterns: [7]', 'patterns[0] = 7: must be a text'],
    ['patterns: [[a]]', 'patterns[0] = ["a"]: must be a text'],
    ['timeout-ms: 0', 'timeout-ms = 0: must be a whole number from 1 to 2147483647'],
    ['timeout-ms: 2147483648', 'timeout-ms = 2147483648: must be a whole number from 1 to 2147483647'],
    ['timeout-ms: 30s', 'timeout-ms = "30s": must be a whole number from 1 to 2147483647'],
    ['max-resends: -1', 'max-resends = -1: must be a whole number from 0 to 1000'],
    ['max-resends: 1001', 'max-resends = 1001: must be a whole number from 0 to 1000'],
    ['backoff: { initial-ms: 0 }', 'backoff.initial-ms = 0: must be a whole number from 1 to 86400000'],
    [
      'backoff: { max-ms: 86400001 }',
      expect.stringMatching(/^backoff\.max-ms = 86400001: must be a whole number from 1 to 86400000, not less/),
    ],
    ['backoff: 5', 'backoff = 5: must be a group of settings'],
    ['batch: 100', 'batch = 100: must be a group of settings'],
    ['batch: {}', 'batch.max-messages: is missing; it must be a whole number from 1 to 1000'],
    ['batch: { max-bytes: 5 }', 'batch.max-messages: is missing; it must be a whole number from 1 to 1000'],
    ['batch: { max-messages: 0 }', 'batch.max-messages = 0: must be a whole number from 1 to 1000'],
    ['batch: { max-messages: 1001 }', 'batch.max-messages = 1001: must be a whole number from 1 to 1000'],
    ['batch: { max-messages: 1, max-bytes: 0 }', 'batch.max-bytes = 0: must be a whole number from 1 to 16777216'],
    ['batch: { max-messages: 1, max-bytes: 16777217 }', 'batch.max-bytes = 16777217: must be a whole number from 1 to 16777216'],
  ])('is refused in a dispatcher: %s', (members, rule) => {
    const lines = refusal(() => load(dispatchers(dispatcher(members))));
    expect(lines).toHaveLength(1);
    const [, found] = /^mmmq\.dispatchers\[0\]\.(.+) \(config\/mmmq\.yaml:3\)$/s.exec(lines[0] ?? '') ?? [];
    expect(found).toEqual(rule);
  });

  it('is refused where a dispatcher lacks what it needs', () => {
    expect(refusal(() => load('mmmq:\n  dispatchers:\n    - {}\n'))).toEqual([
      'mmmq.dispatchers[0].name: is missing; it must be a name spelled as a topic is, of at most 100 characters, not beginning with "dlq." (config/mmmq.yaml:3)',
      'mmmq.dispatchers[0].host: is missing; it must be the http:// or https:// URL of a consumer (config/mmmq.yaml:3)',
      'mmmq.dispatchers[0].patterns: is missing; it must be a list of topic patterns, at least one (config/mmmq.yaml:3)',
    ]);
  });

  it('is refused where an item of the list is no dispatcher, and the others are checked all the same', () => {
    const content = `mmmq:\n  dispatchers:\n    - orders\n    -\n    - [{ ${dispatcher('timeout-ms: 1')} }]\n    - { ${dispatcher('timeout-ms: 0')} }\n`;
    expect(refusal(() => load(content))).toEqual([
      'mmmq.dispatchers[0] = "orders": must be a group of settings (config/mmmq.yaml:3)',
      expect.stringMatching(/^mmmq\.dispatchers\[1\] = null: must be a group of settings \(config\/mmmq\.yaml:\d\)$/),
      expect.stringMatching(/^mmmq\.dispatchers\[2\] = \[.*: must be a group of settings \(config\/mmmq\.yaml:5\)$/),
      'mmmq.dispatchers[3].timeout-ms = 0: must be a whole number from 1 to 2147483647 (config/mmmq.yaml:6)',
    ]);
  });

  it('is shown with a bounded length', () => {
    const [line] = refusal(() => load(`server: { host: "${'/'.repeat(100_000)}" }`));
    expect(line?.length).toBeLessThan(300);
  });
});

describe('values that do not fit each other', () => {
  it('are refused where fewer bytes may be pending than one message or one batch has', () => {
    expect(refusal(() => load('mmmq: { broker: { pending: { max-bytes: 1000 } } }'))).toEqual([
      'mmmq.broker.pending.max-bytes = 1000: must be at least mmmq.broker.message.max-bytes, which is 1048576 (config/mmmq.yaml:1)',
      'mmmq.broker.pending.max-bytes = 1000: must be at least mmmq.broker.batch.max-bytes, which is 16777216 (config/mmmq.yaml:1)',
    ]);
    const content = 'mmmq: { broker: { message: { max-bytes: 2000 }, batch: { max-bytes: 1999 } } }';
    expect(refusal(() => load(content, { MMMQ_BROKER_PENDING_MAX_BYTES: '1999' }))).toEqual([
      'mmmq.broker.pending.max-bytes = 1999: must be at least mmmq.broker.message.max-bytes, which is 2000 (environment variable MMMQ_BROKER_PENDING_MAX_BYTES)',
    ]);
  });

  it('are refused where the longest wait is shorter than the first, also when that is the default', () => {
    const content = dispatchers(
      dispatcher('backoff: { initial-ms: 60001 }'),
      'name: b, host: http://b, patterns: [b], backoff: { max-ms: 999 }',
    );
    expect(refusal(() => load(content))).toEqual([
      'mmmq.dispatchers[0].backoff.max-ms = 60000: must be at least mmmq.dispatchers[0].backoff.initial-ms, which is 60001 (config/mmmq.yaml:3)',
      'mmmq.dispatchers[1].backoff.max-ms = 999: must be at least mmmq.dispatchers[1].backoff.initial-ms, which is 1000 (config/mmmq.yaml:4)',
    ]);
  });

  it('are refused where two dispatchers differ in their case only', () => {
    const content = dispatchers(
      dispatcher('name: Orders'),
      dispatcher('name: other'),
      dispatcher('name: orders'),
      dispatcher('name: ORDERS'),
    );
    expect(refusal(() => load(content))).toEqual([
      'mmmq.dispatchers[2].name = "orders": must differ from mmmq.dispatchers[0].name, also when case is ignored (config/mmmq.yaml:5)',
      'mmmq.dispatchers[3].name = "ORDERS": must differ from mmmq.dispatchers[0].name, also when case is ignored (config/mmmq.yaml:6)',
    ]);
  });
});

describe('the refusal', () => {
  it('is one error that lists the problems of every source', () => {
    write('.env', 'MMMQ_WRONG=1');
    const content = 'server: { port: x, prot: 1 }\nmmmq: { broker: { segment: { max-bytes: 0 } } }';
    const action = (): Settings => load(content, { SERVER_HOST: 'a b' });
    expect(refusal(action).map((line) => line.split(/[:=]/, 1)[0]?.trim())).toEqual([
      'MMMQ_WRONG',
      'server.prot',
      'server.host',
      'server.port',
      'mmmq.broker.segment.max-bytes',
    ]);
    const error = refused(action);
    expect(error).toBeInstanceOf(MmmqError);
    expect(error).toMatchObject({ code: ErrorCode.INVALID_SETTINGS, name: 'InvalidSettingsError' });
    expect(error.problems[2]).toEqual({
      key: 'server.host',
      value: '"a b"',
      rule: 'must be a host name or an IP address, without protocol and port',
      origin: 'environment variable SERVER_HOST',
    });
  });

  it('names the line of the key inside an alias', () => {
    const content = 'mmmq:\n  broker:\n    segment: &limit\n      max-bytes: 16777216\n    message: *limit\n';
    expect(refusal(() => load(content))).toEqual([
      'mmmq.broker.message.max-bytes = 16777216: must be a whole number from 1 to 8388608 (config/mmmq.yaml:4)',
    ]);
  });
});
