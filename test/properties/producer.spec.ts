import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { ProducerFullError, TransportError, type ProducerOptions } from '../../src/producer/index.js';
import { producers } from '../support/producers.js';
import { answer, ImpatientClock, ScriptedTransport, type Script, type SentMessage } from '../support/scripted-transport.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

const open = producers();
const newDirectory = temporaryDirectories();

const TOPICS = ['order.created', 'order.paid', 'mail.sent'];

/** What becomes of one request; `kept`: so many of its messages are stored before the rest fails. */
type Fault =
  | { readonly kind: 'none' | 'not reached' | 'answer lost' | 'too much' | 'nack, and stored' }
  | { readonly kind: 'in the middle'; readonly kept: number };

const faults: fc.Arbitrary<Fault> = fc.oneof(
  fc.constantFrom<Fault>(
    { kind: 'none' },
    { kind: 'not reached' },
    { kind: 'answer lost' },
    { kind: 'too much' },
    { kind: 'nack, and stored' },
  ),
  fc.nat(4).map((kept): Fault => ({ kind: 'in the middle', kept })),
);

/** A produce, and how long its caller looks at other things before the next one. */
const calls = fc.array(fc.record({ topic: fc.constantFrom(...TOPICS), pause: fc.constantFrom(0, 0, 0, 1, 3) }), {
  minLength: 1,
  maxLength: 40,
});

/** A broker that stores each id once and in the order in which messages come, and fails as it is told. */
class ModelBroker {
  readonly logs = new Map<string, string[]>(TOPICS.map((topic) => [topic, []]));

  constructor(private readonly coming: Fault[]) {}

  readonly script: Script = (messages) => {
    const fault = this.coming.shift() ?? { kind: 'none' };
    if (fault.kind === 'not reached') throw new TransportError('connection refused', false);
    if (fault.kind === 'too much') return answer(429, { acknowledgement: 'NACK', reason: 'later' });
    const kept = fault.kind === 'in the middle' ? fault.kept : messages.length;
    const items = messages.map((message, place) =>
      place < kept ? this.store(message) : { status: 507, acknowledgement: 'NACK', reason: 'full' },
    );
    if (fault.kind === 'answer lost') throw new TransportError('connection lost', true);
    if (fault.kind === 'nack, and stored') return answer(503, { acknowledgement: 'NACK', reason: 'the sync failed' });
    if (messages.length > 1) return answer(kept < messages.length ? 507 : 200, items);
    return answer(kept === 0 ? 507 : 200, items[0]);
  };

  private store({ topic, id }: SentMessage): object {
    const log = this.logs.get(topic) ?? [];
    if (!log.includes(id)) log.push(id);
    return { acknowledgement: 'ACK', topic, offset: log.indexOf(id) };
  }
}

async function check(
  given: readonly { readonly topic: string; readonly pause: number }[],
  drawn: readonly Fault[],
  options: Partial<ProducerOptions>,
): Promise<void> {
  const broker = new ModelBroker([...drawn]);
  const producer = await open({
    transport: new ScriptedTransport(broker.script),
    clock: new ImpatientClock(),
    batch: { maxMessages: 5 },
    ...options,
  });
  const receipts = [];
  for (const [number, { topic, pause }] of given.entries()) {
    receipts.push(producer.produce(topic, number, { id: `m${number}` }));
    for (let turn = 0; turn < pause; turn += 1) await setImmediate();
  }
  const refused = new Set<string>();
  for (const [number, outcome] of (await Promise.allSettled(receipts)).entries()) {
    if (outcome.status === 'rejected') {
      expect(outcome.reason).toBeInstanceOf(ProducerFullError);
      refused.add(`m${number}`);
    } else if (outcome.value.outcome === 'acknowledged') {
      const { topic, offset, id } = outcome.value;
      expect(broker.logs.get(topic)?.[offset]).toBe(id);
    }
  }
  await until(() => producer.spoolDepth === 0);
  for (const topic of TOPICS) {
    const expected = given.flatMap((call, number) => (call.topic === topic && !refused.has(`m${number}`) ? [`m${number}`] : []));
    expect(broker.logs.get(topic)).toEqual(expected);
  }
  await producer.close();
}

describe('whatever the broker and the network do', () => {
  it('every message is stored once, in the order of the calls of its topic', async () => {
    await fc.assert(
      fc.asyncProperty(calls, fc.array(faults, { maxLength: 30 }), (given, drawn) => check(given, drawn, {})),
      { numRuns: 300 },
    );
  });

  it('the same holds through a spool, and where the memory is full', async () => {
    await fc.assert(
      fc.asyncProperty(
        calls,
        fc.array(faults, { maxLength: 30 }),
        fc.constantFrom(2000, 1_000_000),
        async (given, drawn, pendingMaxBytes) => {
          await check(given, drawn, { spool: { dir: await newDirectory() }, pendingMaxBytes });
        },
      ),
      { numRuns: 40 },
    );
  });
});
