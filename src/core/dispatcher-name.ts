import { DEAD_LETTER_PREFIX, isReservedName, wordsProblem } from './topic.js';

/** With the prefix of its dead letters in front, a dispatcher's name is still a topic. */
export const MAX_DISPATCHER_NAME_LENGTH = 100;

/**
 * Checks a dispatcher's name: spelled as a topic, 100 characters at most, not beginning with `dlq.` in any case. That names differ
 * also when case is ignored is for whoever sees all of them.
 * @returns the rule that is broken, or undefined
 */
export function dispatcherNameProblem(name: string): string | undefined {
  if (isReservedName(name)) return `a dispatcher name does not begin with "${DEAD_LETTER_PREFIX}", which is kept for dead letters`;
  return wordsProblem(name, 'a dispatcher name', MAX_DISPATCHER_NAME_LENGTH);
}
