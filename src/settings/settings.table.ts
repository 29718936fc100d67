import { isIP } from 'node:net';
import { dispatcherNameProblem, Host, InvalidValueError, MESSAGE_MAX_BYTES, TopicPattern } from '../core/index.js';
import { text, texts, wholeNumber, type SettingRule } from './setting.rule.js';

/** One row of the table. `Default` is undefined where a value must be given. */
export interface Setting<Default> {
  readonly default: Default;
  readonly rule: SettingRule;
  /** One line: what it does, and its unit. */
  readonly meaning: string;
  /** The variables that override it; the first one that is set wins. */
  readonly variables: readonly string[];
  /** A value to show where there is no default. */
  readonly example?: string | number | readonly string[];
  /** It belongs to a group that changes what is done by being there, and so is not there by default. */
  readonly isLeftOut?: boolean;
}

const MAX_TIMER_MS = 2_147_483_647;
/** A day. With the random part on top it stays far below what a timer can hold. */
const MAX_BACKOFF_MS = 86_400_000;
const TIB = 2 ** 40;

/**
 * Every setting, once. Defaults, validation, environment variables, config/mmmq.yaml and .env.example all come from here. The key is
 * the path in the file; `[]` stands for each item of a list.
 */
export const SETTINGS = {
  'server.host': {
    default: '127.0.0.1',
    rule: text('a host name or an IP address, without protocol and port', addressProblem),
    meaning: 'Address to listen on; other machines get in only when this says so (0.0.0.0: every IPv4 address of this machine)',
    variables: ['SERVER_HOST'],
  },
  'server.port': {
    default: 8080,
    rule: wholeNumber(0, 65_535),
    meaning: 'Port to listen on; 0 takes any free one',
    variables: ['SERVER_PORT', 'PORT'],
  },
  'mmmq.broker.storage.root-dir': {
    default: './data',
    rule: text('a path, neither blank nor with control characters', pathProblem),
    meaning: 'Directory of the messages, one sub-directory per topic; a relative path is relative to the working directory',
    variables: ['MMMQ_BROKER_STORAGE_ROOT_DIR'],
  },
  'mmmq.broker.storage.reserve-bytes': {
    default: 4_194_304,
    rule: wholeNumber(0, TIB),
    meaning: 'Room in bytes that dead letters and checkpoints have when the disk is full and publishes are refused; 0 keeps none',
    variables: ['MMMQ_BROKER_STORAGE_RESERVE_BYTES'],
  },
  'mmmq.broker.segment.max-bytes': {
    default: 67_108_864,
    rule: wholeNumber(1, TIB),
    meaning: 'Size in bytes at which a segment is closed and the next one begins; its last message may pass it',
    variables: ['MMMQ_BROKER_SEGMENT_MAX_BYTES'],
  },
  'mmmq.broker.message.max-bytes': {
    default: 1_048_576,
    rule: wholeNumber(1, MESSAGE_MAX_BYTES),
    meaning: 'Largest request body of a publish in bytes; a larger one is refused with 413',
    variables: ['MMMQ_BROKER_MESSAGE_MAX_BYTES'],
  },
  'mmmq.broker.batch.max-messages': {
    default: 10_000,
    rule: wholeNumber(1, 100_000),
    meaning: 'Most messages of a publish in a batch; a larger batch is refused with 413',
    variables: ['MMMQ_BROKER_BATCH_MAX_MESSAGES'],
  },
  'mmmq.broker.batch.max-bytes': {
    default: 16_777_216,
    rule: wholeNumber(1, 268_435_456),
    meaning: 'Largest request body of a publish in a batch in bytes; a larger one is refused with 413',
    variables: ['MMMQ_BROKER_BATCH_MAX_BYTES'],
  },
  'mmmq.broker.pending.max-bytes': {
    default: 67_108_864,
    rule: wholeNumber(1, TIB, ', not less than the largest message and the largest batch'),
    meaning: 'Bytes of publishes received and not yet answered, in the whole broker; what comes above is refused with 429',
    variables: ['MMMQ_BROKER_PENDING_MAX_BYTES'],
  },
  'mmmq.dispatchers[].name': {
    default: undefined,
    rule: text('a name spelled as a topic is, of at most 100 characters, not beginning with "dlq."', dispatcherNameProblem),
    meaning: 'Name of the dispatcher and of its checkpoints; no two are alike, also when case is ignored',
    variables: [],
    example: 'order-dispatcher',
  },
  'mmmq.dispatchers[].host': {
    default: undefined,
    rule: text('the http:// or https:// URL of a consumer', (url) => ruleBroken(() => Host.of(url))),
    meaning: 'The consumer; messages go to /messages below it',
    variables: [],
    example: 'http://localhost:8081',
  },
  'mmmq.dispatchers[].patterns': {
    default: undefined,
    rule: texts('a list of topic patterns, at least one', (pattern) => ruleBroken(() => TopicPattern.of(pattern))),
    meaning: 'The topics that it delivers: * is one word, ** any number of words, ? one character; put one that begins with * in quotes',
    variables: [],
    example: ['order.**', 'payment.*'],
  },
  'mmmq.dispatchers[].timeout-ms': {
    default: 30_000,
    rule: wholeNumber(1, MAX_TIMER_MS),
    meaning: 'Milliseconds for one attempt, from connecting to the last byte of the answer',
    variables: [],
  },
  'mmmq.dispatchers[].max-resends': {
    default: 3,
    rule: wholeNumber(0, 1000),
    meaning: 'How often a message is sent again after a NACK before it becomes a dead letter',
    variables: [],
  },
  'mmmq.dispatchers[].backoff.initial-ms': {
    default: 1000,
    rule: wholeNumber(1, MAX_BACKOFF_MS),
    meaning: 'Milliseconds to wait before the first resend; each further wait is twice as long',
    variables: [],
  },
  'mmmq.dispatchers[].backoff.max-ms': {
    default: 60_000,
    rule: wholeNumber(1, MAX_BACKOFF_MS, ', not less than the first wait'),
    meaning: 'Longest wait in milliseconds',
    variables: [],
  },
  'mmmq.dispatchers[].batch.max-messages': {
    default: undefined,
    rule: wholeNumber(1, 1000),
    meaning: 'Most messages of one request to /messages/batch, which takes what is there; without "batch" each goes to /messages alone',
    variables: [],
    example: 100,
    isLeftOut: true,
  },
  'mmmq.dispatchers[].batch.max-bytes': {
    default: 1_048_576,
    rule: wholeNumber(1, 16_777_216),
    meaning: 'Largest request body of a batch in bytes; a message that is larger goes in a batch of one',
    variables: [],
    isLeftOut: true,
  },
} as const satisfies Record<string, Setting<string | number | undefined>>;

export type SettingPath = keyof typeof SETTINGS;

/** The table as rows, in the order of the file. */
export const SETTING_ROWS: ReadonlyMap<string, Setting<string | number | undefined>> = new Map(Object.entries(SETTINGS));

/** Variables with this beginning are ours; one that is not in the table is a mistake. */
export const VARIABLE_PREFIX = 'MMMQ_';

/** Names the settings file. No setting itself, since it cannot stand in the file. */
export const CONFIG_FILE_VARIABLE = 'MMMQ_CONFIG_FILE';

/** Where the settings file is looked for, below the working directory, when no variable names one. */
export const DEFAULT_CONFIG_FILE = 'config/mmmq.yaml';

function addressProblem(address: string): string | undefined {
  if (isIP(address) !== 0 || /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(address)) return undefined;
  return 'must be a host name or an IP address, without protocol and port';
}

function pathProblem(path: string): string | undefined {
  return path.trim() === '' || /\p{Cc}/u.test(path) ? 'must be a path, neither blank nor with control characters' : undefined;
}

function ruleBroken(make: () => unknown): string | undefined {
  try {
    make();
    return undefined;
  } catch (error) {
    if (error instanceof InvalidValueError) return error.rule;
    throw error;
  }
}
