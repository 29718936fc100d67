import { spawn, type ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mutatedFiles, type Mutant } from './mutant.js';
import type { Report } from './reporter.js';

/** This file runs from test/mutants/dist. */
export const ROOT_DIR = dirname(dirname(dirname(import.meta.dirname)));

const COPIED = /^(src|test|config|package\.json|jest\.config\.mjs|tsconfig.*\.json)$/;
const SWEEP = 'test/crash/sweep.spec.ts';

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
      cpSync(join(ROOT_DIR, name), join(dir, name), { recursive: true, filter: (path) => path !== import.meta.dirname });
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

  /** Runs the crash test up to its first violation. @param testNameEnd only the tests whose names end so */
  sweep(limitMs: number, testNameEnd = ''): Promise<Outcome> {
    return this.run(limitMs, [SWEEP, '--testNamePattern', `${testNameEnd.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`]);
  }

  /** Runs a spec up to its first failure. */
  spec(limitMs: number, path: string): Promise<Outcome> {
    return this.run(limitMs, [path]);
  }

  stop(): void {
    this.child?.kill('SIGKILL');
  }

  private run(limitMs: number, args: readonly string[]): Promise<Outcome> {
    const jest = join(ROOT_DIR, 'node_modules', 'jest', 'bin', 'jest.js');
    const reporter = join(import.meta.dirname, 'reporter.js');
    const child = spawn(
      process.execPath,
      [
        '--experimental-vm-modules',
        jest,
        '--runInBand',
        `--reporters=${reporter}`,
        `--cacheDirectory=${join(dirname(this.dir), 'cache')}`,
        '--runTestsByPath',
        ...args,
      ],
      { cwd: this.dir, env: { ...process.env, MMMQ_CRASH_BAIL: '1' }, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
    );
    this.child = child;
    return new Promise((resolve) => {
      let errors = '';
      let outcome: Outcome | undefined;
      const end = (how: Outcome): void => {
        outcome ??= how;
        child.kill('SIGKILL');
      };
      const limit = setTimeout(() => end({ kind: 'hung', what: `no end within ${limitMs / 1000} s` }), limitMs);
      child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text));
      child.on('message', (report: Report) => end(outcomeOf(report, args[0] === SWEEP)));
      child.on('error', (error) => end({ kind: 'broken', what: error.message }));
      child.on('close', (code) => {
        clearTimeout(limit);
        resolve(outcome ?? { kind: 'broken', what: `jest ended with ${code} and said nothing: ${errors}` });
      });
    });
  }
}

function outcomeOf(report: Report, isSweep: boolean): Outcome {
  switch (report.kind) {
    case 'broken':
      return { kind: 'broken', what: report.message };
    case 'finished':
      return report.passed > 0 ? { kind: 'green' } : { kind: 'broken', what: 'no test was run' };
    case 'failed': {
      const text = `${report.test}: ${report.message}`;
      if (!isSweep) return { kind: report.isProof ? 'violation' : 'broken', what: text };
      const [violation] = report.violations;
      // The crash test lists errors that it did not expect, with their stacks, among the violations.
      return violation === undefined || isStack(violation)
        ? { kind: 'broken', what: violation ?? text }
        : { kind: 'violation', what: violation };
    }
  }
}

function isStack(text: string): boolean {
  return /\n\s+at /.test(text);
}
