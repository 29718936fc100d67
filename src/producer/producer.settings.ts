import { Host, InvalidValueError, type Backoff } from '../core/index.js';
import type { ProducerOptions, SpoolOptions } from './producer.options.js';
import type { BatchLimits } from './next-batch.js';
import type { SpoolSettings } from './spool/index.js';

const MIB = 1024 * 1024;

/** The options with all defaults, checked. */
export interface ProducerSettings {
  readonly host: Host;
  readonly timeoutMs: number;
  readonly deadlineMs: number;
  readonly backoff: Backoff;
  readonly lingerMs: number;
  readonly batch: BatchLimits;
  readonly pendingMaxBytes: number;
  /** Lower-case names; the authentication is among them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly spool: SpoolSettings | undefined;
}

interface NumberRule {
  readonly min: number;
  readonly max: number;
  readonly byDefault: number;
}

const NUMBERS = {
  timeoutMs: { min: 1, max: 3_600_000, byDefault: 10_000 },
  deadlineMs: { min: 1, max: 3_600_000, byDefault: 30_000 },
  lingerMs: { min: 0, max: 60_000, byDefault: 0 },
  pendingMaxBytes: { min: 1, max: 1024 * 1024 * MIB, byDefault: 64 * MIB },
  connections: { min: 1, max: 1024, byDefault: 32 },
} as const satisfies Record<string, NumberRule>;
const BACKOFF = {
  initialMs: { min: 1, max: 3_600_000, byDefault: 100 },
  maxMs: { min: 1, max: 3_600_000, byDefault: 5000 },
} as const satisfies Record<string, NumberRule>;
const BATCH = {
  maxMessages: { min: 1, max: 10_000, byDefault: 1000 },
  maxBytes: { min: 1, max: 16 * MIB, byDefault: MIB },
} as const satisfies Record<string, NumberRule>;
const SPOOL_MESSAGES: NumberRule = { min: 1, max: 1_000_000_000, byDefault: 1_000_000_000 };

const OTHERS = ['broker', 'backoff', 'batch', 'headers', 'auth', 'agent', 'spool', 'observer', 'logger', 'transport', 'clock'];
const SPOOL_MEMBERS = ['dir', 'name', 'maxMessages', 'fileSystem'];
const SPOOL_NAME = /^[A-Za-z0-9._:#-]{1,200}$/;

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
/** Printable ASCII and tabs: what every server reads in the same way. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
/** The producer's own, and those by which a server finds the end of a request. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'idempotency-key',
  'keep-alive',
  'traceparent',
  'tracestate',
  'transfer-encoding',
  'upgrade',
]);

/** @throws {InvalidValueError} naming the option, its value and the rule that it breaks; never a header's value or a password */
export function producerSettings(options: ProducerOptions): ProducerSettings {
  refuseUnknown('', options, [...Object.keys(NUMBERS), ...OTHERS]);
  const backoff = numbersOf('backoff', options.backoff, BACKOFF);
  if (backoff.initialMs > backoff.maxMs)
    throw broken('backoff.initialMs', backoff.initialMs, `must not be above backoff.maxMs, which is ${backoff.maxMs}`);
  refuseOtherObjects(options);
  const { timeoutMs, deadlineMs, lingerMs, pendingMaxBytes, connections } = numbersOf<keyof typeof NUMBERS>('', options, NUMBERS);
  return {
    host: hostOf(options.broker),
    timeoutMs,
    deadlineMs,
    backoff,
    lingerMs,
    batch: numbersOf('batch', options.batch, BATCH),
    pendingMaxBytes,
    headers: headersOf(options),
    connections,
    spool: options.spool === undefined ? undefined : spoolOf(options.spool),
  };
}

function hostOf(broker: string): Host {
  if (typeof broker !== 'string') throw broken('broker', broker, 'must be the URL of the broker, as in http://localhost:8080');
  try {
    return Host.of(broker);
  } catch (error) {
    if (error instanceof InvalidValueError) throw new InvalidValueError(nameOf('broker'), error.value, error.rule);
    throw error;
  }
}

/** Found out with the first message, one that is something else would look like a broker that is away. */
function refuseOtherObjects({ agent, transport, observer, logger }: ProducerOptions): void {
  if (!hasMethods(agent, ['dispatch']))
    throw broken('agent', '…', 'must be a Dispatcher of undici, as an Agent or a ProxyAgent is; an agent of node:http is none');
  if (!hasMethods(transport, ['send'])) throw broken('transport', '…', 'must be an object with a method send(request)');
  if (!hasMethods(logger, ['log', 'warn', 'error'])) throw broken('logger', '…', 'must be a LoggerService');
  if (!hasMethods(observer, [])) throw broken('observer', observer, 'must be an object with methods');
}

/** Whether it is an object that has them, or is left out. */
function hasMethods(value: object | undefined, names: readonly string[]): boolean {
  return value === undefined || (isObject(value) && names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function'));
}

function headersOf({ headers = {}, auth }: ProducerOptions): Readonly<Record<string, string>> {
  if (!isObject(headers)) throw broken('headers', headers, 'must be an object of strings');
  const lowerCase: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase();
    if (!HEADER_NAME.test(key)) throw broken('headers', name, 'must have names of the letters, digits and signs that HTTP allows');
    if (OWN_HEADERS.has(key)) throw broken('headers', name, 'must not have this one, which the producer sets itself where it is needed');
    if (Object.hasOwn(lowerCase, key)) throw broken('headers', name, 'must have each name once, whatever the case of its letters');
    if (typeof value !== 'string' || !HEADER_VALUE.test(value)) throw broken('headers', name, 'must have a value of printable ASCII');
    lowerCase[key] = value;
  }
  if (auth === undefined) return lowerCase;
  if (!isObject(auth) || typeof auth.username !== 'string' || typeof auth.password !== 'string' || auth.username.includes(':'))
    throw broken('auth', '…', 'must be { username, password }, both strings, the user name without a colon');
  refuseUnknown('auth', auth, ['username', 'password']);
  if (Object.hasOwn(lowerCase, 'authorization')) throw broken('auth', '…', 'must not be there beside a header authorization');
  return { ...lowerCase, authorization: `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}` };
}

function spoolOf(spool: SpoolOptions): SpoolSettings {
  if (!isObject(spool)) throw broken('spool', spool, 'must be an object with "dir"');
  refuseUnknown('spool', spool, SPOOL_MEMBERS);
  const { dir, name = 'producer', fileSystem } = spool;
  if (typeof dir !== 'string' || dir === '') throw broken('spool.dir', dir, 'must be the path of a directory');
  if (typeof name !== 'string' || !SPOOL_NAME.test(name))
    throw broken('spool.name', name, 'must be 1 to 200 of the letters A to Z in either case, digits, and . _ - : #');
  return { dir, name, fileSystem, maxMessages: numberOf('spool.maxMessages', spool.maxMessages, SPOOL_MESSAGES) };
}

/** The members of one object that are numbers. @param where the option that it is; empty for the options themselves */
function numbersOf<Name extends string>(
  where: string,
  given: { readonly [Key in Name]?: number | undefined } | undefined,
  rules: Readonly<Record<Name, NumberRule>>,
): Record<Name, number> {
  const object = given ?? {};
  if (!isObject(object)) throw broken(where, object, `must be an object with ${Object.keys(rules).join(', ')}`);
  if (where !== '') refuseUnknown(where, object, Object.keys(rules));
  const values: Partial<Record<Name, number>> = {};
  for (const name of Object.keys(rules) as Name[])
    values[name] = numberOf(
      where === '' ? name : `${where}.${name}`,
      (object as { readonly [Key in Name]?: number | undefined })[name],
      rules[name],
    );
  return values as Record<Name, number>;
}

function numberOf(option: string, value: number | undefined, { min, max, byDefault }: NumberRule): number {
  const number = value ?? byDefault;
  if (!Number.isSafeInteger(number) || number < min || number > max)
    throw broken(option, number, `must be a whole number from ${min} to ${max}`);
  return number;
}

function refuseUnknown(where: string, object: object, known: readonly string[]): void {
  const unknown = Object.keys(object).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw broken(
    where === '' ? unknown : `${where}.${unknown}`,
    '',
    `is unknown; there are ${known.filter((name) => name !== 'clock').join(', ')}`,
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function nameOf(option: string): string {
  return `the option ${option} of Producer`;
}

function broken(option: string, value: unknown, rule: string): InvalidValueError {
  return new InvalidValueError(nameOf(option), String(value), rule);
}
