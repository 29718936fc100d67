import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import { InvalidValueError, TopicPattern } from '../core/index.js';

/** How a listener wants its content. Parsed JSON by default. */
export interface MessageListenerOptions {
  /**
   * The content becomes an instance of this class (class-transformer) and is checked by its decorators (class-validator). Content that breaks a rule is
   * rejected, with the members that are to blame: it becomes a dead letter at once.
   */
  readonly dto?: Type<object> | undefined;
  /** With `dto`: members that the class does not declare are taken out. Off by default: they stay. */
  readonly whitelist?: boolean | undefined;
  /** The content comes as a `Buffer` of its exact bytes: JSON.parse loses digits of large numbers. Not with `dto`. */
  readonly raw?: boolean | undefined;
}

/** What the decorator says of a method. */
export interface ListenerDefinition {
  readonly patterns: readonly TopicPattern[];
  readonly options: MessageListenerOptions;
}

const DEFINITIONS = Symbol('mmmq.message-listener');
const OPTIONS: ReadonlySet<string> = new Set(['dto', 'whitelist', 'raw'] satisfies (keyof MessageListenerOptions)[]);

/**
 * Makes a method of a provider or controller the listener of all topics that a pattern matches:
 *
 *     @MessageListener('order.**')
 *     async onOrder(content: Order, context: MessageContext): Promise<void> { … }
 *
 * Returning, or the fulfilment of what it returns, acknowledges the message. Throwing refuses it with the message of the error, and it is sent again;
 * {@link Reject} gives it up, {@link RetryLater} puts it off. Of listeners whose patterns match a topic the one with the most specific pattern is
 * called, and no other one.
 *
 * @param patterns one or several, as those of a dispatcher: `order.*`, `order.**`, `order-?`
 * @throws {InvalidValueError} when the application is loaded: for what is no pattern or no option, and on a static method
 */
export function MessageListener(
  patterns: string | TopicPattern | readonly (string | TopicPattern)[],
  options: MessageListenerOptions = {},
): MethodDecorator {
  const definition: ListenerDefinition = { patterns: patternsOf(patterns), options: checked(options) };
  return (target, method, descriptor) => {
    const rule = 'must stand on a method of an instance that has a name, neither static nor a symbol nor an accessor';
    const listener: unknown = descriptor.value;
    if (typeof target === 'function' || typeof method === 'symbol' || typeof listener !== 'function')
      throw new InvalidValueError('@MessageListener of', String(method), rule);
    Reflect.defineMetadata(DEFINITIONS, [...definitionsOf(listener), definition], listener);
  };
}

/** What the decorators of a method say; empty where there are none. */
export function definitionsOf(method: object): readonly ListenerDefinition[] {
  return (Reflect.getOwnMetadata(DEFINITIONS, method) as readonly ListenerDefinition[] | undefined) ?? [];
}

function patternsOf(given: string | TopicPattern | readonly (string | TopicPattern)[]): readonly TopicPattern[] {
  const patterns = [given].flat().map((pattern) => TopicPattern.of(String(pattern)));
  if (patterns.length === 0) throw new InvalidValueError('the patterns of @MessageListener', '[]', 'must be one at least');
  return patterns;
}

function checked(options: MessageListenerOptions): MessageListenerOptions {
  for (const key of Object.keys(options))
    if (!OPTIONS.has(key)) throw broken(key, options[key as never], 'is no option: there are dto, whitelist and raw');
  const { dto, whitelist, raw } = options;
  if (dto !== undefined && typeof dto !== 'function') throw broken('dto', dto, 'must be a class');
  if (whitelist !== undefined && typeof whitelist !== 'boolean') throw broken('whitelist', whitelist, 'must be true or false');
  if (raw !== undefined && typeof raw !== 'boolean') throw broken('raw', raw, 'must be true or false');
  if (raw === true && dto !== undefined) throw broken('raw', raw, 'must not be given with dto: raw content is not read');
  if (whitelist === true && dto === undefined) throw broken('whitelist', whitelist, 'must be given with dto alone');
  return { ...options };
}

function broken(key: string, value: unknown, rule: string): InvalidValueError {
  return new InvalidValueError(`the option ${key} of @MessageListener`, String(value), rule);
}
