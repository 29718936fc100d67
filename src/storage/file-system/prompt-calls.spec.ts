import { describe, expect, it } from '@jest/globals';
import { PromptCalls } from './prompt-calls.js';

/** Makes so many calls and says where: `.` at once, `|` in another thread. */
async function make(calls: PromptCalls, count: number, answer: () => void = () => undefined): Promise<string> {
  let made = '';
  for (let call = 0; call < count; call += 1) {
    made += await calls.make(
      () => {
        answer();
        return '.';
      },
      () => Promise.resolve('|'),
    );
  }
  return made;
}

/** As a disk that has to be asked. */
function takeLong(): void {
  const beganAtMs = performance.now();
  while (performance.now() - beganAtMs < 1);
}

describe('calls that read', () => {
  it('go to another thread outside of a start, also behind one that failed', async () => {
    const calls = new PromptCalls();
    expect(await make(calls, 3)).toBe('|||');
    await expect(calls.inStart(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused');
    expect(await make(calls, 3)).toBe('|||');
  });

  it('are made at once in a start, until an answer takes long: then a hundred go to another thread', async () => {
    const calls = new PromptCalls();
    expect(await calls.inStart(() => make(calls, 103, takeLong))).toBe(`.${'|'.repeat(100)}.|`);
  });

  it('let others have the thread from time to time', async () => {
    const calls = new PromptCalls();
    expect(await calls.inStart(() => make(calls, 2_000))).toMatch(/\|/);
  });

  it('fail as they do in another thread', async () => {
    const calls = new PromptCalls();
    const fail = (): never => {
      throw new Error('EIO');
    };
    await expect(calls.inStart(() => make(calls, 1, fail))).rejects.toThrow('EIO');
  });
});
