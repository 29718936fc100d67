/** A topic is one directory name on disk, with room for what file systems and other tools add to it. */
export const MAX_TOPIC_LENGTH = 200;

/** Topics that begin so belong to the broker: they hold the dead letters of the dispatcher that is named behind it. */
export const DEAD_LETTER_PREFIX = 'dlq.';

const OUTSIDE_ALPHABET = /[^A-Za-z0-9._-]/;

/**
 * Checks a topic: words of `A-Z a-z 0-9 _ -` separated by single dots, 200 characters at most.
 * @returns the rule that is broken, as words that follow the topic's name, or undefined when it is a topic
 */
export function topicProblem(name: string): string | undefined {
  return wordsProblem(name, 'a topic', MAX_TOPIC_LENGTH);
}

export function isDeadLetterTopic(topic: string): boolean {
  return topic.startsWith(DEAD_LETTER_PREFIX);
}

/** The topic that holds the dead letters of a dispatcher. */
export function deadLetterTopic(dispatcherName: string): string {
  return `${DEAD_LETTER_PREFIX}${dispatcherName}`;
}

/**
 * Whether a name is kept for the broker. Case does not count here: `DLQ.x` is another topic than `dlq.x`, but the two cannot live side by
 * side, so whoever came first with `DLQ.x` would keep the dead letters of `x` from ever being written.
 */
export function isReservedName(name: string): boolean {
  return name.slice(0, DEAD_LETTER_PREFIX.length).toLowerCase() === DEAD_LETTER_PREFIX;
}

/** The rule that topics and dispatcher names share. `what` begins the sentence. */
export function wordsProblem(name: string, what: string, maxLength: number): string | undefined {
  if (name.length === 0) return `${what} has at least one character`;
  if (name.length > maxLength) return `${what} has at most ${maxLength} characters, this has ${name.length}`;
  if (OUTSIDE_ALPHABET.test(name)) return `${what} has no characters but A-Z, a-z, 0-9, ".", "_" and "-"`;
  if (name.startsWith('.') || name.endsWith('.') || name.includes('..')) {
    return `${what} has no empty word: no dot at the beginning or the end, and no two dots in a row`;
  }
  return undefined;
}
