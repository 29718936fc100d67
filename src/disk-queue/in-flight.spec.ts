import { readdir } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { diskQueues, takeAll } from '../../test/support/disk-queue.js';
import { temporaryDirectories } from '../../test/support/temporary-directory.js';
import { until } from '../../test/support/until.js';
import type { DiskQueue, InFlightMessage } from './index.js';

const openQueue = diskQueues();
const newDirectory = temporaryDirectories();

async function queueOf(
  messages: readonly string[],
  maxBytesPerFile?: number,
): Promise<{ dir: string; queue: DiskQueue; again: () => Promise<DiskQueue> }> {
  const dir = await newDirectory();
  const queue = await openQueue({ dir, name: 'spool', maxBytesPerFile });
  for (const text of messages) await queue.put(Buffer.from(text));
  const again = async (): Promise<DiskQueue> => {
    await queue.close();
    return openQueue({ dir, name: 'spool', maxBytesPerFile });
  };
  return { dir, queue, again };
}

async function takeInFlight(queue: DiskQueue, count: number): Promise<InFlightMessage[]> {
  const taken: InFlightMessage[] = [];
  for (let index = 0; index < count; index += 1) taken.push((await queue.takeInFlight()) as InFlightMessage);
  return taken;
}

const textOf = (message: InFlightMessage | undefined): string | undefined => message?.bytes.toString();

describe('a message in flight', () => {
  it('is counted and not given to anybody else, and is gone once it is confirmed', async () => {
    const { queue, again } = await queueOf(['a', 'b', 'c']);
    const [a, b] = await takeInFlight(queue, 2);
    expect([textOf(a), textOf(b)]).toEqual(['a', 'b']);
    expect(queue.depth).toBe(3);
    expect((await queue.peek())?.toString()).toBe('c');
    await a?.confirm();
    await a?.confirm();
    expect(queue.depth).toBe(2);
    await b?.confirm();
    expect(queue.depth).toBe(1);
    expect(await takeAll(await again())).toEqual(['c']);
  });

  it('comes again after a close where it was not confirmed, in its place', async () => {
    const { queue, again } = await queueOf(['a', 'b', 'c']);
    const [a, b] = await takeInFlight(queue, 2);
    await a?.confirm();
    const next = await again();
    expect(next.depth).toBe(2);
    expect(await takeAll(next)).toEqual(['b', 'c']);
    await expect(b?.confirm()).rejects.toMatchObject({ code: 'MMMQ_CLOSED' });
  });

  it('keeps those behind it from being removed on the disk, even confirmed ones', async () => {
    const { queue, again } = await queueOf(['a', 'b', 'c', 'd']);
    const [a, b, c] = await takeInFlight(queue, 3);
    await b?.confirm();
    await c?.confirm();
    expect(queue.depth).toBe(2);
    const next = await again();
    expect(next.depth).toBe(4);
    expect(await takeAll(next)).toEqual(['a', 'b', 'c', 'd']);
    expect(textOf(a)).toBe('a');
  });

  it('lets all of them go at once when it is confirmed last', async () => {
    const { queue, again } = await queueOf(['a', 'b', 'c', 'd']);
    const [a, b, c] = await takeInFlight(queue, 3);
    await c?.confirm();
    await b?.confirm();
    await a?.confirm();
    expect(await takeAll(await again())).toEqual(['d']);
  });

  it('is the next to be taken when it is given back, before those behind it', async () => {
    const { queue } = await queueOf(['a', 'b', 'c', 'd']);
    const [a, b, c] = await takeInFlight(queue, 3);
    b?.giveBack();
    a?.giveBack();
    a?.giveBack();
    expect((await queue.peek())?.toString()).toBe('a');
    const [again] = await takeInFlight(queue, 1);
    expect(textOf(again)).toBe('a');
    expect((await queue.take())?.toString()).toBe('b');
    expect((await queue.take())?.toString()).toBe('d');
    expect(await queue.take()).toBeUndefined();
    expect(queue.depth).toBe(2);
    await c?.confirm();
    await again?.confirm();
    expect(queue.depth).toBe(0);
  });

  it('wakes a taker that waits when it is given back', async () => {
    const { queue } = await queueOf(['a']);
    const [a] = await takeInFlight(queue, 1);
    const iterator = queue.inFlight();
    const next = iterator.next();
    a?.giveBack();
    expect(textOf((await next).value as InFlightMessage)).toBe('a');
  });

  it('keeps its file, however far the reader is', async () => {
    const { dir, queue } = await queueOf(['a', 'b', 'c', 'd', 'e'], 10);
    const dataFiles = async (): Promise<string[]> => (await readdir(dir)).filter((name) => /\d\.dat$/.test(name));
    const taken = await takeInFlight(queue, 5);
    for (const message of taken.slice(1)) await message.confirm();
    expect(await dataFiles()).toHaveLength(3);
    await taken[0]?.confirm();
    await until(async () => (await dataFiles()).length === 1);
  });

  it("is nobody's any more where the queue was emptied", async () => {
    const { queue, again } = await queueOf(['a', 'b']);
    const [a] = await takeInFlight(queue, 1);
    await queue.empty();
    await queue.put(Buffer.from('c'));
    await a?.confirm();
    a?.giveBack();
    expect(queue.depth).toBe(1);
    expect(await takeAll(await again())).toEqual(['c']);
  });

  it('comes in a loop, and waits for the next', async () => {
    const { queue } = await queueOf(['a', 'b']);
    const sent: string[] = [];
    const sender = (async () => {
      for await (const message of queue.inFlight()) {
        sent.push(message.bytes.toString());
        await message.confirm();
      }
    })();
    await until(() => sent.length === 2);
    await queue.put(Buffer.from('c'));
    await until(() => sent.length === 3 && queue.depth === 0);
    await queue.close();
    await sender;
    expect(sent).toEqual(['a', 'b', 'c']);
  });
});
