import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { InvalidValueError, TopicPattern, topicProblem } from '../../src/core/index.js';
import { anyPattern, anyTopic, modelMatches } from '../support/pattern-model.js';

function ruleBroken(pattern: string): string | undefined {
  try {
    TopicPattern.of(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof InvalidValueError) return error.rule;
    throw error;
  }
}

describe('topic patterns, against a model that tries everything', () => {
  it('match the same topics', () => {
    fc.assert(
      fc.property(anyPattern, anyTopic, (text, name) => {
        expect(TopicPattern.of(text).matches(name)).toBe(modelMatches(text.split('.'), name.split('.')));
      }),
      { numRuns: 5000 },
    );
  });

  it('a pattern without wildcards is a topic, and matches that topic alone', () => {
    fc.assert(
      fc.property(anyTopic, anyTopic, (text, name) => {
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
