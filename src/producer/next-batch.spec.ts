import { describe, expect, it } from '@jest/globals';
import { nextBatch, type Sendable } from './next-batch.js';

const LIMITS = { maxMessages: 10, maxBytes: 1000 };
const trace = (digit: string): { readonly traceparent: string } => ({ traceparent: digit });

/** `a1`: the first message of topic a. */
function waiting(...names: readonly (string | { readonly name: string; readonly trace: string })[]): Sendable[] {
  return names.map((given) => {
    const { name, trace: digit } = typeof given === 'string' ? { name: given, trace: undefined } : given;
    const topic = name.slice(0, 1);
    return { message: { topic, id: name, body: Buffer.alloc(100), trace: digit === undefined ? undefined : trace(digit) } };
  });
}

const idsOf = (batch: readonly Sendable[]): string => batch.map(({ message }) => message.id).join(' ');

describe('the next batch', () => {
  it('has the oldest messages, as many as it may have', () => {
    const line = waiting('a1', 'b1', 'a2', 'b2');
    expect(idsOf(nextBatch(line, LIMITS))).toBe('a1 b1 a2 b2');
    expect(idsOf(nextBatch(line, { ...LIMITS, maxMessages: 3 }))).toBe('a1 b1 a2');
    expect(idsOf(nextBatch(line, { ...LIMITS, maxBytes: 202 }))).toBe('a1 b1');
    expect(idsOf(nextBatch(line, { ...LIMITS, maxBytes: 1 }))).toBe('a1');
    expect(nextBatch([], LIMITS)).toEqual([]);
  });

  it('has the trace of its first message, and nothing of a topic behind a message that stays', () => {
    const line = waiting(
      { name: 'a1', trace: 'x' },
      { name: 'b1', trace: 'y' },
      { name: 'b2', trace: 'x' },
      { name: 'a2', trace: 'x' },
      'a3',
    );
    expect(idsOf(nextBatch(line, LIMITS))).toBe('a1 a2');
    expect(idsOf(nextBatch(line.slice(1), LIMITS))).toBe('b1');
  });

  it('has one message of a topic that is stuck', () => {
    expect(idsOf(nextBatch(waiting('a1', 'a2', 'b1', 'a3', 'b2'), LIMITS, (topic) => topic === 'a'))).toBe('a1 b1 b2');
  });
});
