import { spawn, type ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryDirectories } from '../support/temporary-directory.js';
import type { PartOutcome } from './main.js';
import { PARTS, type PartName } from './parts.js';

/** A bounded part of what `npm run crash` runs, in processes of its own as there; `MMMQ_CRASH_SEED` for another run. */
const SEED = process.env['MMMQ_CRASH_SEED'] ?? '1';
const LIMIT_MS = 900_000;
const ROOT_DIR = join(import.meta.dirname, '..', '..');
const WHAT: Readonly<Record<PartName, string>> = {
  crashes: 'the power fails or the process dies at any step of, or in any start after',
  errors: 'any call fails, and all goes on by itself, in',
  repair: 'a repair is interrupted, or fails, after',
};

const newDirectory = temporaryDirectories();

describe('under every crash and every error of the disk', () => {
  let outcomes: PartOutcome[] = [];
  let child: ChildProcess | undefined;

  /** Resolves at the end of the process, with what it printed. */
  function runNode(...args: string[]): Promise<string> {
    const started = spawn(process.execPath, args, { cwd: ROOT_DIR, stdio: ['ignore', 'pipe', 'inherit'] });
    child = started;
    return new Promise((resolve, reject) => {
      let output = '';
      started.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
      started.on('error', reject);
      started.on('close', () => resolve(output));
    });
  }

  beforeAll(async () => {
    // The types are checked elsewhere.
    const compilerOutput = await runNode('node_modules/typescript/bin/tsc', '--noCheck', '-p', 'test/crash/tsconfig.json');
    if (compilerOutput !== '') throw new Error(compilerOutput);
    const json = join(await newDirectory(), 'sweep.json');
    const output = await runNode('test/crash/dist/test/crash/main.js', '--bounded', '--seed', SEED, '--json', json);
    process.stdout.write(output.slice(output.lastIndexOf('crash: ')));
    outcomes = JSON.parse(await readFile(json, 'utf8')) as PartOutcome[];
  }, LIMIT_MS);

  afterAll(() => {
    child?.kill();
  });

  it.each(PARTS.map((part) => ({ ...part, what: WHAT[part.part] })))('every promise holds when $what: $workload', ({ workload, part }) => {
    const outcome = outcomes.find((candidate) => candidate.workload === workload && candidate.part === part);
    const again = `npm run crash -- --bounded --seed ${SEED} --workload ${JSON.stringify(workload)} --part ${part}`;
    expect(outcome?.report.violations.slice(0, 5).map((violation) => `${violation}\n  to see it again: ${again}`)).toEqual([]);
    expect(outcome?.isWhole).toBe(true);
    expect(outcome?.report.images).toBeGreaterThan(10);
    if (part !== 'repair') expect(outcome?.report.errors).toBeGreaterThan(5);
  });
});
