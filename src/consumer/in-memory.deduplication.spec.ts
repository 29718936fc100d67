import { describe, expect, it } from '@jest/globals';
import { Gate } from '../../test/support/gate.js';
import { InMemoryDeduplication } from './in-memory.deduplication.js';

describe('InMemoryDeduplication', () => {
  it('does work once for an id', async () => {
    const memory = new InMemoryDeduplication();
    const done: string[] = [];
    for (const id of ['a', 'b', 'a', 'b', 'a']) await memory.once(id, async () => void done.push(id));
    expect(done).toEqual(['a', 'b']);
  });

  it('lets the second of two at once wait for the first', async () => {
    const memory = new InMemoryDeduplication();
    const gate = new Gate();
    const done: string[] = [];
    const first = memory.once('a', async () => {
      await gate.opened;
      done.push('first');
    });
    const second = memory.once('a', async () => void done.push('second')).then(() => done.push('second is back'));
    await memory.once('b', async () => void done.push('other'));
    expect(done).toEqual(['other']);
    gate.open();
    await Promise.all([first, second]);
    expect(done).toEqual(['other', 'first', 'second is back']);
  });

  it('forgets work that fails, and lets one of those who wait do it', async () => {
    const memory = new InMemoryDeduplication();
    const gate = new Gate();
    const done: string[] = [];
    const first = memory.once('a', async () => {
      await gate.opened;
      throw new Error('no');
    });
    const others = ['second', 'third'].map((name) => memory.once('a', async () => void done.push(name)));
    gate.open();
    await expect(first).rejects.toThrow('no');
    await Promise.all(others);
    expect(done).toEqual(['second']);
  });

  it('remembers so many ids, the last ones', async () => {
    const memory = new InMemoryDeduplication({ maxIds: 2 });
    const done: string[] = [];
    for (const id of ['a', 'b', 'c', 'b', 'a']) await memory.once(id, async () => void done.push(id));
    expect(done).toEqual(['a', 'b', 'c', 'a']);
  });

  it.each([0, -1, 1.5, Number.NaN, 10_000_001])('refuses maxIds %p', (maxIds) => {
    expect(() => new InMemoryDeduplication({ maxIds })).toThrow(/the option maxIds of InMemoryDeduplication .*from 1 to 10000000/);
  });
});
