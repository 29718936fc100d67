import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { InvalidValueError, TopicPattern, topicProblem } from '../../src/core/index.js';

/** The rules as they are told, by trying everything. */
function modelMatches(pattern: readonly string[], topic: readonly string[]): boolean {
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

function ruleBroken(pattern: string): string | undefined {
  try {
    TopicPattern.of(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof InvalidValueError) return error.rule;
    throw error;
  }
}

const word = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 4 });
const topic = fc.array(word, { minLength: 1, maxLength: 5 }).map((words) => words.join('.'));
const patternWord = fc.oneof(
  fc.constant('**'),
  fc.string({ unit: fc.constantFrom('a', 'b', '*', '?'), minLength: 1, maxLength: 5 }).filter((text) => !text.includes('**')),
);
const pattern = fc.array(patternWord, { minLength: 1, maxLength: 5 }).map((words) => words.join('.'));

describe('topic patterns, against a model that tries everything', () => {
  it('match the same topics', () => {
    fc.assert(
      fc.property(pattern, topic, (text, name) => {
        expect(TopicPattern.of(text).matches(name)).toBe(modelMatches(text.split('.'), name.split('.')));
      }),
      { numRuns: 5000 },
    );
  });

  it('a pattern without wildcards is a topic, and matches that topic alone', () => {
    fc.assert(
      fc.property(topic, topic, (text, name) => {
        expect(topicProblem(text)).toBeUndefined();
        expect(TopicPattern.of(text).matches(name)).toBe(text === name);
      }),
    );
  });

  it('any string is a pattern or refused with a rule, and never anything else', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '.', '*', '?', '/', 'é'), maxLength: 8 }), (text) => {
        const valid = text.split('.').every((part) => part === '**' || (/^[a*?]+$/.test(part) && !part.includes('**')));
        expect(ruleBroken(text) === undefined).toBe(valid);
      }),
      { numRuns: 2000 },
    );
  });
});
