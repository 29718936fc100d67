import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { makeDataDirectory } from '../../test/support/damaged-directory.js';
import { temporaryDirectories } from '../../test/support/temporary-directory.js';
import { NodeFileSystem } from '../storage/index.js';
import { runCommandLine } from './command-line.js';
import { ProcessTerminal } from './terminal.js';

const newDirectory = temporaryDirectories();

/** Stands for the character that begins each command to a terminal. */
const ESCAPE = '␛';

/** Takes what is written, and shows it as a terminal with one line would. */
class Screen extends Writable {
  written = '';

  constructor(readonly isTTY: boolean) {
    super({ decodeStrings: false });
  }

  override _write(chunk: string, _encoding: BufferEncoding, done: () => void): void {
    this.written += chunk.replaceAll('\u001b', ESCAPE);
    done();
  }

  /** What stands on the line in the end. */
  get line(): string {
    let line = '';
    let column = 0;
    let saved = 0;
    for (const [sign, code] of this.written.matchAll(/␛(\[\??[\d;]*[A-Za-z]|[78])|[^]/g)) {
      if (code === undefined) {
        line = line.slice(0, column).padEnd(column) + sign + line.slice(column + 1);
        column += 1;
      } else if (code === '7') saved = column;
      else if (code === '8') column = saved;
      else if (code.endsWith('G')) column = Number.parseInt(code.slice(1)) - 1;
      else if (code === '[2K') line = '';
      else if (code === '[K' || code === '[0K') line = line.slice(0, column);
    }
    return line.trimEnd();
  }
}

interface Run {
  readonly code: number;
  readonly output: Screen;
  readonly errors: Screen;
}

/** Verifies a directory with five messages. @param stepMs how much later it is whenever the time is asked for */
async function verified({ isTTY, stepMs, words = [] }: { isTTY: boolean; stepMs: number; words?: readonly string[] }): Promise<Run> {
  const rootDir = join(await newDirectory(), 'data');
  await makeDataDirectory(rootDir);
  const [output, errors] = [new Screen(isTTY), new Screen(isTTY)];
  let nowMs = 0;
  const terminal = new ProcessTerminal(output, errors, () => (nowMs += stepMs));
  const code = await runCommandLine(['verify', rootDir, ...words], terminal, new NodeFileSystem());
  return { code, output, errors };
}

describe('a result', () => {
  it('that is taken slowly is waited for, and nothing goes on listening afterwards', async () => {
    const output = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => void setImmediate(done) });
    const terminal = new ProcessTerminal(output, new Screen(false));
    const listening = (): number[] => ['drain', 'close', 'error'].map((event) => output.listenerCount(event));
    const before = listening();
    for (let line = 0; line < 20; line += 1) {
      expect(await terminal.print('line\n')).toBe(true);
      expect(output.writableLength).toBe(0);
    }
    expect(listening()).toEqual(before);
  });

  it.each([[undefined], [new Error('EPIPE')]])('is waited for no longer once its reader is gone, with the error %s', async (error) => {
    const output = new Writable({ highWaterMark: 1, write: () => void setImmediate(() => output.destroy(error)) });
    const terminal = new ProcessTerminal(output, new Screen(false));
    await terminal.print('line\n');
    expect(await terminal.print('another\n')).toBe(false);
  });
});

describe('the progress of a long run', () => {
  it('is shown on a terminal, beside the result, and is gone at the end', async () => {
    const { code, output, errors } = await verified({ isTTY: true, stepMs: 600 });
    expect(errors.written).toMatch(/read \[.*\] 0 of 1 MiB/);
    expect(errors.line).toBe('');
    // Nothing of the terminal's own settings was touched that an interrupted run would leave so.
    expect(errors.written).not.toMatch(/␛\[\?/);
    expect([code, output.written]).toEqual([0, expect.stringMatching(/^\/.*: 1 topic\norder\.created: [^␛]*Clean\.\n$/)]);
  });

  it.each([
    ['in its first second', { isTTY: true, stepMs: 1 }],
    ['where the errors go to no terminal', { isTTY: false, stepMs: 600 }],
    ['with --json', { isTTY: true, stepMs: 600, words: ['--json'] }],
  ])('is not shown %s', async (_where, run) => {
    const { code, errors } = await verified(run);
    expect([code, errors.written]).toEqual([0, '']);
  });
});
