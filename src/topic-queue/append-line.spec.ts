import { describe, expect, it } from '@jest/globals';
import { Gate } from '../../test/support/gate.js';
import { MemoryEngine } from '../../test/support/memory-engine.js';
import { until } from '../../test/support/until.js';
import { type Clock, ENTRY_HEADER_BYTES, ErrorCode, MmmqError, systemClock } from '../core/index.js';
import { type Message, messageOf } from '../message/index.js';
import { AppendLine } from './append-line.js';

const message = (content: unknown): Message => messageOf({ topic: 'order.created', content });
const entryBytes = ENTRY_HEADER_BYTES + message('x').storedBytes(Date.now()).length;

/** An engine whose appends wait until they are let go. */
function heldEngine(): { engine: MemoryEngine; gate: Gate } {
  const engine = new MemoryEngine();
  const gate = new Gate();
  engine.faults.append = () => gate.opened;
  return { engine, gate };
}

function lineOver(engine: MemoryEngine, passMaxBytes?: number, clock: Clock = systemClock) {
  const log = engine.withTopic('order.created');
  const stored: [number, Message][] = [];
  return { log, stored, line: new AppendLine(log, clock, (offset, of) => stored.push([offset, of]), passMaxBytes) };
}

describe('AppendLine', () => {
  it('acknowledges messages with their offsets, in the order in which they joined', async () => {
    const { line, log, stored } = lineOver(new MemoryEngine());
    const messages = Array.from({ length: 50 }, (_, index) => message(index));

    await expect(Promise.all(messages.map((each) => line.join(each)))).resolves.toEqual(messages.map((_, index) => index));
    expect(log.payloads.map((payload) => (JSON.parse(payload.toString()) as { content: number }).content)).toEqual(
      messages.map((_, index) => index),
    );
    expect(stored).toEqual(messages.map((each, offset) => [offset, each]));
  });

  it('lets those share the first pass that join in one go, and everybody who waits during a pass the next one', async () => {
    const { engine, gate } = heldEngine();
    const { line, log } = lineOver(engine);
    const joinAll = (): Promise<number>[] => Array.from({ length: 10 }, (_, index) => line.join(message(index)));
    const appends = joinAll();
    await until(() => log.passes.length === 1);
    appends.push(...joinAll(), ...joinAll());
    gate.open();
    await Promise.all(appends);

    expect(log.passes.map((pass) => pass.length)).toEqual([10, 20]);
  });

  it('has one pass at a time', async () => {
    const engine = new MemoryEngine();
    let atOnce = 0;
    let most = 0;
    engine.faults.append = async () => {
      most = Math.max(most, (atOnce += 1));
      await Promise.resolve();
      atOnce -= 1;
      return undefined;
    };
    const { line } = lineOver(engine);
    const appends: Promise<number>[] = [];
    for (let round = 0; round < 20; round += 1) {
      appends.push(line.join(message(round)));
      await Promise.resolve();
    }
    await Promise.all(appends);

    expect(most).toBe(1);
  });

  it('ends a pass before it passes the limit, and takes a message that fills it exactly', async () => {
    const { engine, gate } = heldEngine();
    const { line, log } = lineOver(engine, 3 * entryBytes);
    const appends = Array.from({ length: 8 }, () => line.join(message('x')));
    gate.open();
    await Promise.all(appends);

    expect(log.passes.map((pass) => pass.length)).toEqual([3, 3, 2]);
  });

  it('keeps the order when a large message waits for the next pass and small ones behind it would still fit', async () => {
    const { engine, gate } = heldEngine();
    const { line, log } = lineOver(engine, 3 * entryBytes);
    const large = 'x'.repeat(entryBytes);
    const contents = ['a', 'b', 'c', large, 'd', 'e', 'f', large, large, 'g'];
    const appends = contents.map((content) => line.join(message(content)));
    gate.open();

    await expect(Promise.all(appends)).resolves.toEqual(contents.map((_, index) => index));
    expect(log.payloads.map((payload) => (JSON.parse(payload.toString()) as { content: string }).content)).toEqual(contents);
    expect(log.passes.map((pass) => pass.length)).toEqual([3, 2, 2, 1, 2]);
  });

  it('refuses a message that no pass can hold, and only that one', async () => {
    const { line, log } = lineOver(new MemoryEngine(), entryBytes);

    const outcomes = await Promise.allSettled([line.join(message('too long')), line.join(message('x')), line.join(message('longer'))]);

    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected']);
    expect(outcomes[0]).toMatchObject({ reason: { status: 413 } });
    expect(log.count).toBe(1);
  });

  it('refuses such a message in its turn, and loses none of those in front of it', async () => {
    const { engine, gate } = heldEngine();
    const { line, log } = lineOver(engine, 2 * entryBytes);
    const contents = ['a', 'b', 'c', 'd', 'x'.repeat(2 * entryBytes), 'e'];
    const appends = Promise.allSettled(contents.map((content) => line.join(message(content))));
    gate.open();

    expect((await appends).map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : 'refused'))).toEqual([
      0,
      1,
      2,
      3,
      'refused',
      4,
    ]);
    expect(log.count).toBe(5);
  });

  it('acknowledges the part of a pass that is durable and fails the rest, and goes on', async () => {
    const { engine, gate } = heldEngine();
    const { line, log, stored } = lineOver(engine);
    const failure = new MmmqError(ErrorCode.DISK_FULL, 'no room');
    const first = line.join(message('first'));
    await until(() => log.passes.length === 1);
    const second = Array.from({ length: 4 }, (_, index) => line.join(message(index)));
    gate.open();
    await first;
    engine.faults.append = (_, payloads) => (payloads.length === 4 ? { stored: 3, failure } : undefined);

    const outcomes = await Promise.allSettled(second);
    expect(outcomes.slice(0, 3).map((outcome) => outcome.status === 'fulfilled' && outcome.value)).toEqual([1, 2, 3]);
    expect(outcomes[3]).toEqual({ status: 'rejected', reason: failure });
    await expect(line.join(message('after'))).resolves.toBe(4);
    expect(stored.map(([offset]) => offset)).toEqual([0, 1, 2, 3, 4]);
  });

  it('makes no error for a pass that was stored', async () => {
    const { line, log } = lineOver(new MemoryEngine());
    let errors = 0;
    // Only an error names the topic.
    Object.defineProperty(log, 'topic', { get: () => (errors += 1) });
    await line.join(message('x'));

    expect(errors).toBe(0);
  });

  it('fails everybody in a pass that breaks off in a way nobody foresaw, and goes on', async () => {
    const engine = new MemoryEngine();
    const { line } = lineOver(engine);
    engine.faults.append = () => {
      throw new TypeError('a bug');
    };
    await expect(line.join(message(1))).rejects.toMatchObject({ code: ErrorCode.APPEND_FAILED, cause: expect.any(TypeError) });
    delete engine.faults.append;

    await expect(line.join(message(2))).resolves.toBe(0);
  });

  it('takes the time stamp when the pass is formed', async () => {
    const { engine, gate } = heldEngine();
    let nowMs = 1000;
    const { line, log } = lineOver(engine, undefined, { ...systemClock, now: () => nowMs });
    const first = line.join(message('first'));
    await until(() => log.passes.length === 1);
    const second = line.join(message('second'));
    nowMs = 2000;
    gate.open();
    await Promise.all([first, second]);

    expect(log.payloads.map((payload) => (JSON.parse(payload.toString()) as { timestamp: number }).timestamp)).toEqual([1000, 2000]);
  });
});
