import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { ENTRY_HEADER_BYTES, systemClock } from '../../src/core/index.js';
import { messageOf, PublishRefusedError } from '../../src/message/index.js';
import { IdempotencyMemory, type IdempotencyLimits, TopicQueue } from '../../src/topic-queue/index.js';
import { MemoryEngine } from '../support/memory-engine.js';

const TOPICS = ['order.created', 'order.paid'];

type Step =
  | { readonly kind: 'publish'; readonly topic: string; readonly id: string | undefined; readonly content: string }
  | { readonly kind: 'restart' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('publish' as const),
      topic: fc.constantFrom(...TOPICS),
      id: fc.constantFrom(undefined, 'a', 'b', 'c', 'd'),
      content: fc.constantFrom('x', 'y', 'x'.repeat(60)),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
);

interface ModelEntry {
  readonly id: string | undefined;
  readonly content: string;
  readonly bytes: number;
}

/** What formats.md says, word for word: the last message with the id among those that count for the next offset. */
function expectedOutcome(
  entries: readonly ModelEntry[],
  id: string | undefined,
  content: string,
  limits: IdempotencyLimits,
): number | 'refused' {
  if (id === undefined) return entries.length;
  let bytes = 0;
  for (let offset = entries.length - 1; offset >= 0; offset -= 1) {
    const entry = entries[offset] as ModelEntry;
    bytes += entry.bytes;
    if (entries.length - offset > limits.maxCount || bytes > limits.maxBytes) break;
    if (entry.id === id) return entry.content === content ? offset : 'refused';
  }
  return entries.length;
}

describe('The idempotency window', () => {
  it('answers every message as a plain list of the log would, across restarts, dropped windows and both limits', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60 }),
        fc.record({ maxCount: fc.integer({ min: 1, max: 8 }), maxBytes: fc.integer({ min: 100, max: 900 }) }),
        fc.integer({ min: 1, max: 6 }),
        async (steps, limits, maxIds) => {
          let engine = new MemoryEngine();
          for (const topic of TOPICS) engine.withTopic(topic);
          const start = (): Map<string, TopicQueue> => {
            const idempotencyMemory = new IdempotencyMemory(maxIds);
            const options = { clock: systemClock, idempotencyMemory, idempotencyLimits: limits };
            return new Map([...engine.logs].map(([topic, log]) => [topic, new TopicQueue(log, options)]));
          };
          let queues = start();
          const model = new Map<string, ModelEntry[]>(TOPICS.map((topic) => [topic, []]));

          for (const each of steps) {
            if (each.kind === 'restart') {
              engine = engine.restarted();
              queues = start();
              continue;
            }
            const { topic, id, content } = each;
            const entries = model.get(topic) as ModelEntry[];
            const expected = expectedOutcome(entries, id, content, limits);
            const outcome = await (queues.get(topic) as TopicQueue).append(messageOf({ topic, id, content })).catch((error: unknown) => {
              if (error instanceof PublishRefusedError && error.status === 422) return 'refused';
              throw error;
            });
            expect(outcome).toBe(expected);
            if (expected === entries.length) {
              const payload = engine.logs.get(topic)?.payloads.at(-1) as Buffer;
              entries.push({ id, content, bytes: ENTRY_HEADER_BYTES + payload.length });
            }
            expect(engine.logs.get(topic)?.count).toBe(entries.length);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
