import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { InvalidValueError } from '../core/index.js';
import type { Deduplication } from './deduplication.port.js';

const MIB = 1024 * 1024;
const MAX_CONCURRENCY = 10_000;
const MAX_MAX_BODY_BYTES = 64 * MIB;

/** What becomes of a message whose topic no listener's pattern matches. */
export const NoListener = {
  /** NACK with `retry: false`: it becomes a dead letter, where it can be seen. */
  REJECT: 'reject',
  /** 503: it comes again and holds up its topic until there is a listener. */
  RETRY: 'retry',
  /** ACK: it is passed over in silence. */
  ACKNOWLEDGE: 'acknowledge',
} as const;
export type NoListener = (typeof NoListener)[keyof typeof NoListener];

/** How messages are taken. Each has its default. */
export interface ConsumerOptions {
  /** So many requests are handled at a time, batches counting as one; the others wait for their turn: 1 to 10,000; 32 by default. */
  readonly concurrency?: number | undefined;
  /** The largest request body, in bytes: 1 to 64 MiB; 16 MiB by default, which is the most that a dispatcher sends. */
  readonly maxBodyBytes?: number | undefined;
  /** What becomes of a message whose topic no listener's pattern matches; `reject` by default. */
  readonly noListener?: NoListener | undefined;
  /** Keeps listeners from being called twice for one message, as far as it can. None by default. */
  readonly deduplication?: Deduplication | undefined;
}

/** Where messages are taken. */
export interface ConsumerRouteOptions {
  /**
   * `POST <path>` takes a message and `POST <path>/batch` several, behind the global prefix of the application; `/messages` by default. A dispatcher
   * calls `{host}/messages`: with the path `/consumer/messages` its host is `http://localhost:3000/consumer`.
   */
  readonly path?: string | undefined;
  /** Guards of the two routes, beside the global ones. What they refuse is sent again and again until they let it pass. */
  readonly guards?: readonly (CanActivate | Type<CanActivate>)[] | undefined;
  /** Modules whose providers the guards, or `inject`, need. */
  readonly imports?: ModuleMetadata['imports'];
}

/** The options with all defaults, checked. */
export interface ConsumerSettings {
  readonly concurrency: number;
  readonly maxBodyBytes: number;
  readonly noListener: NoListener;
  readonly deduplication: Deduplication | undefined;
}

export interface RouteSettings {
  /** Without a slash in front. */
  readonly path: string;
  readonly guards: readonly (CanActivate | Type<CanActivate>)[];
  readonly imports: NonNullable<ModuleMetadata['imports']>;
}

/** The token of the {@link ConsumerSettings}. */
export const CONSUMER_SETTINGS = Symbol('mmmq.consumer.settings');

const OPTIONS = ['concurrency', 'maxBodyBytes', 'noListener', 'deduplication'] as const satisfies readonly (keyof ConsumerOptions)[];
const ROUTE_OPTIONS = ['path', 'guards', 'imports'] as const satisfies readonly (keyof ConsumerRouteOptions)[];
const PATH = /^(?:\/[A-Za-z0-9._~-]+)+$/;

/**
 * @param origin who was given them, for the message: `ConsumerModule.forRoot`
 * @throws {InvalidValueError} naming the option, its value and the rule that it breaks
 */
export function consumerSettings(options: ConsumerOptions, origin: string): ConsumerSettings {
  refuseUnknown(options, OPTIONS, origin);
  const { noListener = NoListener.REJECT, deduplication } = options;
  if (!Object.values(NoListener).includes(noListener))
    throw broken('noListener', noListener, 'must be reject, retry or acknowledge', origin);
  if (deduplication !== undefined && typeof (deduplication as Partial<Deduplication> | null)?.once !== 'function')
    throw broken('deduplication', deduplication, 'must be an object with a method once(id, work)', origin);
  return {
    concurrency: numberOf('concurrency', options.concurrency ?? 32, MAX_CONCURRENCY, origin),
    maxBodyBytes: numberOf('maxBodyBytes', options.maxBodyBytes ?? 16 * MIB, MAX_MAX_BODY_BYTES, origin),
    noListener,
    deduplication,
  };
}

/**
 * Takes the options of the routes out of all options of a call.
 * @param more names the options beside these that it takes
 * @returns the others too
 * @throws {InvalidValueError} naming the option, its value and the rule that it breaks
 */
export function routeSettings(
  { path = '/messages', guards = [], imports = [], ...others }: ConsumerRouteOptions,
  more: readonly string[],
  origin: string,
): RouteSettings & { readonly others: ConsumerOptions } {
  refuseUnknown(others, [...ROUTE_OPTIONS, ...more], origin);
  if (typeof path !== 'string' || !PATH.test(path))
    throw broken(
      'path',
      path,
      'must be words of A-Z, a-z, 0-9, ".", "_", "~" and "-", each with a slash in front, as in /messages',
      origin,
    );
  if (!Array.isArray(guards)) throw broken('guards', guards, 'must be a list of guards', origin);
  return { path: path.slice(1), guards, imports, others };
}

/** The names of what {@link consumerSettings} takes. */
export const CONSUMER_OPTION_NAMES: readonly string[] = OPTIONS;

function numberOf(key: string, value: number, max: number, origin: string): number {
  if (!Number.isSafeInteger(value) || value < 1 || value > max) throw broken(key, value, `must be a whole number from 1 to ${max}`, origin);
  return value;
}

function refuseUnknown(options: object, known: readonly string[], origin: string): void {
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) throw broken(unknown, options[unknown as never], `is no option; there are ${known.join(', ')}`, origin);
}

function broken(key: string, value: unknown, rule: string, origin: string): InvalidValueError {
  return new InvalidValueError(`the option ${key} of ${origin}`, String(value), rule);
}
