import { InvalidValueError } from './mmmq.error.js';
import { DEAD_LETTER_PREFIX, isDeadLetterTopic, MAX_TOPIC_LENGTH } from './topic.js';

const ANY_WORDS = '**';
const OUTSIDE_ALPHABET = /[^A-Za-z0-9._*?-]/;

/**
 * Which topics a dispatcher wants. A pattern has one word per position:
 *
 * - `*` is exactly one word, and inside a word any number of characters, also none (`order-*`, `a*c`);
 * - `**`, alone in its word, is any number of words, also none (`news.**` matches `news` and `news.world.europe`);
 * - `?` is exactly one character;
 * - nothing but `**` reaches over a dot.
 *
 * The broker's own topics (`dlq.…`) are matched only by a pattern that begins with `dlq.` itself.
 *
 * Matching costs at most pattern length times topic length, whatever the pattern.
 */
export class TopicPattern {
  private readonly words: readonly string[];
  private readonly deadLetters: boolean;

  /** @throws {InvalidValueError} when it is no pattern */
  constructor(readonly pattern: string) {
    const rule = patternProblem(pattern);
    if (rule !== undefined) throw new InvalidValueError('pattern', pattern, rule);
    this.words = pattern.split('.');
    this.deadLetters = pattern.startsWith(DEAD_LETTER_PREFIX);
  }

  /** @throws {InvalidValueError} when it is no pattern */
  static of(pattern: string): TopicPattern {
    return new TopicPattern(pattern);
  }

  matches(topic: string): boolean {
    if (isDeadLetterTopic(topic) && !this.deadLetters) return false;
    return matchesWords(this.words, topic.split('.'));
  }

  toString(): string {
    return this.pattern;
  }
}

function patternProblem(pattern: string): string | undefined {
  if (pattern.length === 0) return 'a pattern has at least one character';
  if (pattern.length > MAX_TOPIC_LENGTH) return `a pattern has at most ${MAX_TOPIC_LENGTH} characters, this has ${pattern.length}`;
  if (OUTSIDE_ALPHABET.test(pattern)) return 'a pattern has no characters but those of a topic (A-Z, a-z, 0-9, ".", "_", "-"), "*" and "?"';
  for (const word of pattern.split('.')) {
    if (word === '') return 'a pattern has no empty word: no dot at the beginning or the end, and no two dots in a row';
    if (word !== ANY_WORDS && word.includes('**')) return '"**" stands alone in its word, as in "order.**"';
  }
  return undefined;
}

/*
 * Both matchers below keep only the last wildcard seen: when a later part fails, that wildcard takes one more and the part behind it is
 * tried again. An earlier wildcard never has to be reconsidered, since the later one can take whatever the earlier one would have left.
 * So each pair of pattern part and topic part is compared at most once.
 */

function matchesWords(pattern: readonly string[], topic: readonly string[]): boolean {
  let p = 0;
  let t = 0;
  let afterWildcard = -1;
  let retryAt = 0;
  while (t < topic.length) {
    const word = pattern[p];
    if (word === ANY_WORDS) {
      afterWildcard = ++p;
      retryAt = t;
    } else if (word !== undefined && matchesCharacters(word, topic[t] ?? '')) {
      p++;
      t++;
    } else if (afterWildcard >= 0) {
      p = afterWildcard;
      t = ++retryAt;
    } else {
      return false;
    }
  }
  while (pattern[p] === ANY_WORDS) p++;
  return p === pattern.length;
}

function matchesCharacters(pattern: string, word: string): boolean {
  let p = 0;
  let w = 0;
  let afterWildcard = -1;
  let retryAt = 0;
  while (w < word.length) {
    const character = pattern[p];
    if (character === '*') {
      afterWildcard = ++p;
      retryAt = w;
    } else if (character === '?' || (character !== undefined && character === word[w])) {
      p++;
      w++;
    } else if (afterWildcard >= 0) {
      p = afterWildcard;
      w = ++retryAt;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}
