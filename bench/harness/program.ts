import { execFile } from 'node:child_process';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

/** None of them runs longer by itself; one that does hangs. */
const PROGRAM_TIMEOUT_MS = 120_000;

const run = promisify(execFile);

/** The path of a program of the bench: `programPath('yardsticks', 'append-loop')`. */
export function programPath(folder: 'harness' | 'yardsticks', name: string): string {
  return join(import.meta.dirname, '..', folder, `${name}.program.js`);
}

/**
 * Runs a program in a process of its own, to its end: `input` goes in as JSON, its result comes back as JSON.
 * @throws {Error} with all that the program said, when it fails or takes too long
 */
export async function runProgram<Result>(script: string, input: unknown): Promise<Result> {
  try {
    const { stdout } = await run(process.execPath, [script, JSON.stringify(input)], { timeout: PROGRAM_TIMEOUT_MS });
    return JSON.parse(stdout) as Result;
  } catch (error) {
    const { stderr, signal } = error as { readonly stderr?: string; readonly signal?: string };
    throw new Error(`${basename(script)} failed${signal ? ` (${signal})` : ''}: ${stderr}`, { cause: error });
  }
}

/** In a program: what it was given. */
export function programInput<Input>(): Input {
  return JSON.parse(process.argv[2] ?? 'null') as Input;
}

/** In a program: gives the result and ends, whatever connections are open. */
export function endWithResult(result: unknown): void {
  process.stdout.write(JSON.stringify(result), () => process.exit());
}
