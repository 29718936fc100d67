import { ErrorCode, MmmqError, type TopicPattern } from '../core/index.js';
import type { Listener } from './listener.js';
import { commonTopic, isSpecialCase } from './pattern-comparison.js';

interface Entry {
  readonly pattern: TopicPattern;
  readonly listener: Listener;
  /** How many other patterns are special cases of this one. A special case of a pattern has fewer of them than the pattern itself. */
  rank: number;
}

/** Which listener gets the messages of a topic: the one with the most specific pattern. */
export class ListenerTable {
  /** A special case stands in front of the general one. */
  private readonly entries: readonly Entry[];

  /** @throws {MmmqError} where two listeners match one topic and neither pattern is a special case of the other */
  constructor(readonly listeners: readonly Listener[]) {
    const entries = listeners.flatMap((listener) => listener.patterns.map((pattern) => ({ pattern, listener, rank: 0 })));
    for (const [index, one] of entries.entries()) for (const other of entries.slice(index + 1)) compare(one, other);
    this.entries = entries.sort((a, b) => a.rank - b.rank);
  }

  listenerFor(topic: string): Listener | undefined {
    return this.entries.find(({ pattern }) => pattern.matches(topic))?.listener;
  }
}

function compare(one: Entry, other: Entry): void {
  const [a, b] = [String(one.pattern), String(other.pattern)];
  const topic = commonTopic(a, b);
  if (topic === undefined) return;
  const [isOneSpecial, isOtherSpecial] = [isSpecialCase(a, b), isSpecialCase(b, a)];
  if (isOneSpecial) other.rank += 1;
  if (isOtherSpecial) one.rank += 1;
  if (isOneSpecial !== isOtherSpecial || one.listener === other.listener) return;
  const why = isOneSpecial ? 'these patterns are the same' : 'neither of these is a special case of the other';
  const isTwice = one.listener.name === other.listener.name ? '; is its class a provider of two modules?' : '';
  throw new MmmqError(
    ErrorCode.INVALID_SETTINGS,
    `${one.listener.name} ("${a}") and ${other.listener.name} ("${b}") both listen to ${topic}, and a message has one listener, the one with the ` +
      `more specific pattern: ${why}; change one of them${isTwice}`,
  );
}
