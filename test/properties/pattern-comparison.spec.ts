import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { commonTopic, isSpecialCase, topicBeside } from '../../src/consumer/pattern-comparison.js';
import { TopicPattern } from '../../src/core/index.js';
import { anyPattern, modelMatches } from '../support/pattern-model.js';

/** Every topic of at most so many words of at most so many letters. */
function topicsOf(letters: readonly string[], maxWordLength: number, maxWords: number): readonly string[] {
  const words: string[] = [];
  for (let longest = ['']; (longest[0]?.length ?? 0) < maxWordLength;) {
    longest = longest.flatMap((word) => letters.map((letter) => word + letter));
    words.push(...longest);
  }
  const topics = [...words];
  for (let longest = words, count = 1; count < maxWords; count += 1) {
    longest = longest.flatMap((topic) => words.map((word) => `${topic}.${word}`));
    topics.push(...longest);
  }
  return topics;
}

const TOPICS = [...topicsOf(['a', 'b', 'z'], 3, 2), ...topicsOf(['a', 'z'], 2, 4)];
const fits = (text: string, topic: string): boolean => modelMatches(text.split('.'), topic.split('.'));
/** Patterns about dead letters too. */
const alsoOfDeadLetters = fc.oneof(
  anyPattern,
  fc.tuple(fc.constantFrom('dlq', 'dl?', '*lq', '*', '**', 'd*'), anyPattern).map((words) => words.join('.')),
);

describe('two patterns, compared and then tried on many topics', () => {
  it('have a topic in common that both match, or none', () => {
    fc.assert(
      fc.property(alsoOfDeadLetters, alsoOfDeadLetters, (one, other) => {
        const [a, b] = [TopicPattern.of(one), TopicPattern.of(other)];
        const topic = commonTopic(one, other);
        if (topic === undefined) expect(TOPICS.filter((each) => a.matches(each) && b.matches(each))).toEqual([]);
        else expect([topic, a.matches(topic), b.matches(topic)]).toEqual([topic, true, true]);
        expect(commonTopic(other, one) === undefined).toBe(topic === undefined);
      }),
      { numRuns: 400 },
    );
  });

  it('are a special case of each other, or one has a topic that the other has not', () => {
    fc.assert(
      fc.property(alsoOfDeadLetters, alsoOfDeadLetters, (one, other) => {
        const topic = topicBeside(one, other);
        if (topic === undefined) expect(TOPICS.filter((each) => fits(one, each) && !fits(other, each))).toEqual([]);
        else expect([topic, fits(one, topic), fits(other, topic)]).toEqual([topic, true, false]);
      }),
      { numRuns: 400 },
    );
  });
});

describe('two patterns', () => {
  it.each([
    ['order.*', '*.created', 'order.created'],
    ['order.**', '**.order', 'order'],
    ['a.a.**', '**.b.b', 'a.a.b.b'],
    ['order-?', '*-1', 'order-1'],
    ['**', 'dlq.**', 'dlq'],
    ['*.x', '**.x.**', 'x.x'],
    ['dl?.a', '?lq.a', undefined],
    ['dl?.a', '?la.a', 'dla.a'],
    ['**.created', 'dlq.*', undefined],
    ['order.*', 'order.*.*', undefined],
    ['order.created', 'Order.created', undefined],
    ['a?', 'a', undefined],
  ])('%s and %s have %s in common', (one, other, topic) => {
    expect(commonTopic(one, other)).toBe(topic);
  });

  it.each([
    ['order.created', 'order.*'],
    ['order.*', 'order.**'],
    ['order.**', '**'],
    ['dlq.**', '**'],
    ['order.*.**', 'order.**'],
    ['**.*', '*.**'],
    ['*', '**'],
    ['?*', '*'],
    ['*', '?*'],
    ['a?*', 'a*?'],
    ['order-*', 'order*'],
    ['**', '**.*'],
  ])('%s is a special case of %s', (one, other) => {
    expect(isSpecialCase(one, other)).toBe(true);
  });

  it.each([
    ['order.**', 'order.*'],
    ['order.**', 'order.*.**'],
    ['order.*', '*.created'],
    ['a*', 'a?*'],
    ['**', '*'],
  ])('%s is none of %s', (one, other) => {
    expect(isSpecialCase(one, other)).toBe(false);
  });

  it('are compared at once also where they have many wildcards, or refused as too intricate', () => {
    const long = Array.from({ length: 40 }, () => 'a*b').join('.');
    expect(isSpecialCase(long, '**')).toBe(true);
    expect(commonTopic(`${'**.a.'.repeat(30)}**`, `${'**.b.'.repeat(30)}**`)).toBeDefined();
    const intricate = `*a${'?'.repeat(60)}`;
    expect(isSpecialCase('*', intricate)).toBe(false);
    expect(() => isSpecialCase(intricate, intricate)).toThrow(/too intricate to be compared: use fewer wildcards/);
  });
});
