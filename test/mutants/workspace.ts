import { spawn, type ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mutatedFiles, type Mutant } from './mutant.js';
import type { Report } from './reporter.js';

/** This file runs from test/mutants/dist. */
export const ROOT_DIR = dirname(dirname(dirname(import.meta.dirname)));

const COPIED = /^(src|test|config|package\.json|jest\.config\.mjs|tsconfig.*\.json)$/;
const SWEEP_PROJECT = 'test/crash/tsconfig.json';
const SWEEP_MAIN = 'test/crash/dist/test/crash/main.js';
const SWEEP_RESULT = 'sweep.json';

/** How a run of tests ended. */
export type Outcome =
  /** Every test passed. */
  | { readonly kind: 'green' }
  /** A promise was seen broken. */
  | { readonly kind: 'violation'; readonly what: string }
  /** The run came to no end. */
  | { readonly kind: 'hung'; readonly what: string }
  /** Something failed that says nothing about a promise: code that cannot be loaded, an error that no test expected. */
  | { readonly kind: 'broken'; readonly what: string };

/** A copy of the repository in which a mutant can stand, with jest to run there. */
export class Workspace {
  private child: ChildProcess | undefined;

  constructor(private readonly dir: string) {
    mkdirSync(dir);
    for (const name of readdirSync(ROOT_DIR).filter((found) => COPIED.test(found))) {
      cpSync(join(ROOT_DIR, name), join(dir, name), { recursive: true, filter: (path) => !path.endsWith('/dist') });
    }
    symlinkSync(join(ROOT_DIR, 'node_modules'), join(dir, 'node_modules'));
  }

  /** @throws {Error} where the mutant does not fit the code */
  assertFits(mutant: Mutant): void {
    mutatedFiles(mutant, this.dir);
  }

  /** Runs the work with the mutant in the place of the product. */
  async with<T>(mutant: Mutant, work: () => Promise<T>): Promise<T> {
    const mutated = mutatedFiles(mutant, this.dir);
    const originals = [...mutated.keys()].map((file) => [file, readFileSync(join(this.dir, file))] as const);
    for (const [file, text] of mutated) writeFileSync(join(this.dir, file), text);
    try {
      return await work();
    } finally {
      for (const [file, bytes] of originals) writeFileSync(join(this.dir, file), bytes);
    }
  }

  /** Runs the crash test up to its first violation. @param workload this one alone */
  async sweep(limitMs: number, workload?: string): Promise<Outcome> {
    rmSync(join(this.dir, SWEEP_RESULT), { force: true });
    // A mutant need not have the right types.
    const compiled = await this.run(limitMs, [
      join(ROOT_DIR, 'node_modules', 'typescript', 'bin', 'tsc'),
      '--noCheck',
      '-p',
      SWEEP_PROJECT,
    ]);
    if (compiled !== 'ended') return compiled;
    const args = [
      '--bounded',
      '--bail',
      '--jobs',
      '1',
      '--json',
      SWEEP_RESULT,
      ...(workload === undefined ? [] : ['--workload', workload]),
    ];
    const ended = await this.run(limitMs, [SWEEP_MAIN, ...args]);
    return ended === 'ended' ? this.sweepOutcome() : ended;
  }

  /** Runs a spec up to its first failure. */
  async spec(limitMs: number, path: string): Promise<Outcome> {
    const args = [
      '--experimental-vm-modules',
      join(ROOT_DIR, 'node_modules', 'jest', 'bin', 'jest.js'),
      '--runInBand',
      `--reporters=${join(import.meta.dirname, 'reporter.js')}`,
      `--cacheDirectory=${join(dirname(this.dir), 'cache')}`,
      '--runTestsByPath',
      path,
    ];
    const ended = await this.run(limitMs, args, outcomeOf);
    return ended === 'ended' ? { kind: 'broken', what: 'jest ended and said nothing' } : ended;
  }

  stop(): void {
    if (this.child?.pid === undefined || this.child.exitCode !== null || this.child.signalCode !== null) return;
    // With all that it started: one of those may go round in circles, and hear nothing.
    process.kill(-this.child.pid, 'SIGKILL');
  }

  /** Resolves when the process ended by itself, or with the outcome that ended it. */
  private run(limitMs: number, args: readonly string[], judge?: (report: Report) => Outcome): Promise<Outcome | 'ended'> {
    const child = spawn(process.execPath, args, { cwd: this.dir, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    this.child = child;
    return new Promise((resolve) => {
      let output = '';
      let outcome: Outcome | undefined;
      const end = (how: Outcome): void => {
        outcome ??= how;
        this.stop();
      };
      const limit = setTimeout(() => end({ kind: 'hung', what: `no end within ${limitMs / 1000} s` }), limitMs);
      for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
      if (judge !== undefined) child.on('message', (report: Report) => end(judge(report)));
      child.on('error', (error) => end({ kind: 'broken', what: error.message }));
      child.on('close', (code) => {
        clearTimeout(limit);
        // The crash test ends with 1 when it saw a violation, which its result tells.
        const isBad = code !== 0 && !existsSync(join(this.dir, SWEEP_RESULT));
        resolve(outcome ?? (isBad ? { kind: 'broken', what: `ended with ${code}: ${output}` } : 'ended'));
      });
    });
  }

  private sweepOutcome(): Outcome {
    const parts = JSON.parse(readFileSync(join(this.dir, SWEEP_RESULT), 'utf8')) as readonly SweptPart[];
    const violation = parts.flatMap(({ report }) => report.violations)[0];
    // The crash test lists errors that it did not expect, with their stacks, among the violations.
    if (violation !== undefined) return { kind: isStack(violation) ? 'broken' : 'violation', what: violation };
    const unfinished = parts.find(({ isWhole, report }) => !isWhole || report.images === 0);
    if (unfinished === undefined) return { kind: 'green' };
    return { kind: 'broken', what: `${unfinished.part} of ${unfinished.workload} did not come to its end` };
  }
}

/** What is read of the crash test's result. */
interface SweptPart {
  readonly workload: string;
  readonly part: string;
  readonly isWhole: boolean;
  readonly report: { readonly images: number; readonly violations: readonly string[] };
}

function outcomeOf(report: Report): Outcome {
  switch (report.kind) {
    case 'broken':
      return { kind: 'broken', what: report.message };
    case 'finished':
      return report.passed > 0 ? { kind: 'green' } : { kind: 'broken', what: 'no test was run' };
    case 'failed':
      return { kind: report.isProof ? 'violation' : 'broken', what: `${report.test}: ${report.message}` };
  }
}

function isStack(text: string): boolean {
  return /\n\s+at /.test(text);
}
