import { describe, expect, it } from '@jest/globals';
import { Gate } from '../../test/support/gate.js';
import { MemoryEngine } from '../../test/support/memory-engine.js';
import { until } from '../../test/support/until.js';
import { ErrorCode, MmmqError, systemClock } from '../core/index.js';
import { type Message, messageOf } from '../message/index.js';
import { IdempotencyMemory } from './idempotency-memory.js';
import { TopicQueueState } from './topic-queue.state.js';
import { TopicQueue } from './topic-queue.js';

const LIMITS = { maxCount: 4, maxBytes: 1024 };

const message = (id: string | undefined, content: unknown = 'x'): Message => messageOf({ topic: 'order.created', id, content });

function queueOver(engine: MemoryEngine, idempotencyMemory = new IdempotencyMemory()): TopicQueue {
  const log = engine.logs.get('order.created') ?? engine.withTopic('order.created');
  return new TopicQueue(log, { clock: systemClock, idempotencyMemory, idempotencyLimits: LIMITS });
}

async function appendAll(queue: TopicQueue, messages: readonly Message[]): Promise<number[]> {
  const offsets: number[] = [];
  for (const each of messages) offsets.push(await queue.append(each));
  return offsets;
}

describe('TopicQueue', () => {
  it('stores a message with an id once and acknowledges a resend with the first offset', async () => {
    const queue = queueOver(new MemoryEngine());

    await expect(appendAll(queue, [message('a'), message('b'), message('a')])).resolves.toEqual([0, 1, 0]);
    expect(queue.count).toBe(2);
  });

  it('refuses other content under the same id', async () => {
    const queue = queueOver(new MemoryEngine());
    await queue.append(message('a', { amount: 1 }));

    await expect(queue.append(message('a', { amount: 2 }))).rejects.toMatchObject({ status: 422, field: 'id' });
    expect(queue.count).toBe(1);
  });

  it('knows the ids again after a restart', async () => {
    const engine = new MemoryEngine();
    await appendAll(queueOver(engine), [message('a', 1), message(undefined), message('b', 2)]);
    const queue = queueOver(engine.restarted());

    await expect(queue.append(message('a', 1))).resolves.toBe(0);
    await expect(queue.append(message('b', 3))).rejects.toMatchObject({ status: 422 });
  });

  it('forgets an id when as many messages as the window holds came after it, and not earlier', async () => {
    const engine = new MemoryEngine();
    const filler = Array.from({ length: LIMITS.maxCount - 1 }, () => message(undefined));
    const queue = queueOver(engine);
    await appendAll(queue, [message('a'), ...filler]);

    await expect(queue.append(message('a'))).resolves.toBe(0);
    await expect(queueOver(engine.restarted()).append(message('a'))).resolves.toBe(0);
    await queue.append(message(undefined));
    await expect(queueOver(engine.restarted()).append(message('a'))).resolves.toBe(5);
    await expect(queue.append(message('a'))).resolves.toBe(5);
  });

  it('forgets an id when more bytes of the log than the window holds follow from it on', async () => {
    const engine = new MemoryEngine();
    const queue = queueOver(engine);
    await appendAll(queue, [message('a', 'x'.repeat(400)), message('b', 'x'.repeat(200))]);

    await expect(queue.append(message('a', 'x'.repeat(400)))).resolves.toBe(0);
    await queue.append(message(undefined, 'x'.repeat(300)));
    await expect(queue.append(message('b', 'x'.repeat(200)))).resolves.toBe(1);
    await expect(queueOver(engine.restarted()).append(message('a', 'other'))).resolves.toBe(3);
    await expect(queue.append(message('a', 'other'))).resolves.toBe(3);
  });

  it('stores a message anew when the first one is corrupt, before and after a restart', async () => {
    const engine = new MemoryEngine();
    const queue = queueOver(engine);
    await queue.append(message('a', 1));
    engine.logs.get('order.created')?.corrupt.add(0);

    await expect(queueOver(engine.restarted()).append(message('a', 2))).resolves.toBe(1);
    await expect(queue.append(message('a', 2))).resolves.toBe(1);
    await expect(queue.append(message('a', 2))).resolves.toBe(1);
  });

  it('does not keep messages without an id waiting while the ids are read back, and misses none that is stored meanwhile', async () => {
    const engine = new MemoryEngine();
    await queueOver(engine).append(message('a'));
    const restarted = engine.restarted();
    const gate = new Gate();
    restarted.faults.read = () => gate.opened;
    const queue = queueOver(restarted);
    const resend = queue.append(message('a'));

    await expect(queue.append(message(undefined))).resolves.toBe(1);
    gate.open();
    await expect(resend).resolves.toBe(0);
    await expect(queue.append(message('c'))).resolves.toBe(2);
  });

  it('answers resends that come while the first is under way as it answers the first', async () => {
    const engine = new MemoryEngine();
    const gate = new Gate();
    engine.faults.append = () => gate.opened;
    const queue = queueOver(engine);
    const outcomes = Promise.allSettled(
      [message('a', 1), message('a', 1), message('a', 2), message('b', 1)].map((each) => queue.append(each)),
    );
    gate.open();

    const [first, same, other, next] = await outcomes;
    expect([first, same, next]).toEqual([0, 0, 1].map((value) => ({ status: 'fulfilled', value })));
    expect(other).toMatchObject({ status: 'rejected', reason: { status: 422, field: 'id' } });
    expect(queue.count).toBe(2);
  });

  it('fails resends that come while the first is under way with its failure, and stores the next one', async () => {
    const engine = new MemoryEngine();
    const failure = new MmmqError(ErrorCode.DISK_FULL, 'no room');
    engine.faults.append = () => ({ stored: 0, failure });
    const queue = queueOver(engine);

    const outcomes = await Promise.allSettled([
      queue.append(message('a', 1)),
      queue.append(message('a', 1)),
      queue.append(message('a', 2)),
    ]);
    expect(outcomes).toEqual([1, 2, 3].map(() => ({ status: 'rejected', reason: failure })));
    delete engine.faults.append;
    await expect(queue.append(message('a', 2))).resolves.toBe(0);
  });

  it('says that the ids cannot be read and tries again with the next message', async () => {
    const engine = new MemoryEngine();
    await queueOver(engine).append(message('a'));
    const restarted = engine.restarted();
    restarted.faults.read = () => {
      throw new MmmqError(ErrorCode.IO, 'input/output error');
    };
    const queue = queueOver(restarted);

    await expect(queue.append(message('a'))).rejects.toMatchObject({ code: ErrorCode.IO });
    await expect(queue.append(message(undefined))).resolves.toBe(1);
    delete restarted.faults.read;
    await expect(queue.append(message('a'))).resolves.toBe(0);
  });

  it('keeps the order of messages with and without an id', async () => {
    const engine = new MemoryEngine();
    const queue = queueOver(engine);
    await queue.append(message('start'));
    const messages = Array.from({ length: 20 }, (_, index) => message(index % 2 === 0 ? `id-${index}` : undefined, index));

    await expect(Promise.all(messages.map((each) => queue.append(each)))).resolves.toEqual(messages.map((_, index) => index + 1));
  });

  it('answers what is under way when it closes, and takes nothing more', async () => {
    const engine = new MemoryEngine();
    const gate = new Gate();
    engine.faults.append = () => gate.opened;
    const queue = queueOver(engine);
    const underWay = [queue.append(message(undefined)), queue.append(message('a'))];
    const closed = queue.close();

    await expect(queue.append(message('b'))).rejects.toMatchObject({ code: ErrorCode.CLOSED });
    expect(queue.state).toBe(TopicQueueState.CLOSING);
    gate.open();
    await closed;
    await expect(Promise.all(underWay)).resolves.toEqual([0, 1]);
    expect(queue.state).toBe(TopicQueueState.CLOSED);
  });
});

describe('IdempotencyMemory', () => {
  it('drops the window that was not used for the longest time when there are too many ids, and reads it back when it is needed', async () => {
    const memory = new IdempotencyMemory(5);
    const [first, second, third] = [1, 2, 3].map(() => queueOver(new MemoryEngine(), memory)) as [TopicQueue, TopicQueue, TopicQueue];
    await appendAll(first, [message('a'), message('b')]);
    await appendAll(second, [message('a'), message('b')]);
    await first.append(message('a'));
    await appendAll(third, [message('a'), message('b')]);

    expect(memory.idCount).toBe(4);
    await expect(appendAll(second, [message('a'), message('b')])).resolves.toEqual([0, 1]);
    expect(memory.idCount).toBe(4);
    await expect(appendAll(first, [message('a'), message('b')])).resolves.toEqual([0, 1]);
    await expect(appendAll(third, [message('b'), message('c')])).resolves.toEqual([1, 2]);
    expect(memory.idCount).toBeLessThanOrEqual(5);
  });

  it('loses no id that is stored while its window, dropped meanwhile, is read back', async () => {
    const memory = new IdempotencyMemory(1);
    const engine = new MemoryEngine();
    const queue = queueOver(engine, memory);
    await queue.append(message(undefined));
    const append = new Gate();
    engine.faults.append = () => append.opened;
    const underWay = queue.append(message('a'));
    await until(() => engine.logs.get('order.created')?.passes.length === 2);
    await appendAll(queueOver(new MemoryEngine(), memory), [message('x'), message('y')]);
    const read = new Gate();
    let reads = 0;
    engine.faults.read = () => {
      reads += 1;
      return read.opened;
    };
    const next = queue.append(message('b'));
    await until(() => reads > 0);
    append.open();
    await underWay;
    read.open();
    await next;

    await expect(queue.append(message('a'))).resolves.toBe(1);
  });

  it('counts down as ids leave their windows', async () => {
    const memory = new IdempotencyMemory();
    const queue = queueOver(new MemoryEngine(), memory);
    await appendAll(
      queue,
      Array.from({ length: 100 }, (_, index) => message(`id-${index}`)),
    );

    expect(memory.idCount).toBeLessThanOrEqual(LIMITS.maxCount + 1);
  });
});
