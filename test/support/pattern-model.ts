import * as fc from 'fast-check';

/** The rules as they are told, by trying everything. */
export function modelMatches(pattern: readonly string[], topic: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return topic.length === 0;
  if (first === '**') return modelMatches(rest, topic) || (topic.length > 0 && modelMatches(pattern, topic.slice(1)));
  return topic.length > 0 && modelMatchesWord(first, topic[0] ?? '') && modelMatches(rest, topic.slice(1));
}

function modelMatchesWord(pattern: string, word: string): boolean {
  if (pattern === '') return word === '';
  if (pattern[0] === '*') return modelMatchesWord(pattern.slice(1), word) || (word !== '' && modelMatchesWord(pattern, word.slice(1)));
  return word !== '' && (pattern[0] === '?' || pattern[0] === word[0]) && modelMatchesWord(pattern.slice(1), word.slice(1));
}

const word = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 4 });
export const anyTopic = fc.array(word, { minLength: 1, maxLength: 5 }).map((words) => words.join('.'));
const patternWord = fc.oneof(
  fc.constant('**'),
  fc.string({ unit: fc.constantFrom('a', 'b', '*', '?'), minLength: 1, maxLength: 5 }).filter((text) => !text.includes('**')),
);
export const anyPattern = fc.array(patternWord, { minLength: 1, maxLength: 5 }).map((words) => words.join('.'));
