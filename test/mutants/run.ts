import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { MUTANTS } from './list/index.js';
import type { Mutant } from './mutant.js';
import { Workspace, type Outcome } from './workspace.js';

/*
 * npm run mutants -- [part of a name …] [--jobs n]
 *
 * The test of the crash test: breaks one promise of the product at a time, in a copy, and demands that the crash test sees it. Ends with 0 when
 * it saw all of them, with 1 when a mutant survived, and with 2 when the list does not fit the code or the tests fail without a mutant.
 */

/** A mutant that makes the broker go round in circles without ever waiting takes the event loop along; the tests cannot see that themselves. */
const MIN_LIMIT_MS = 120_000;
/** So many times longer than the tests without a mutant. */
const LIMIT_FACTOR = 5;
const MAX_TEXT = 600;

class Unfit extends Error {}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { jobs: { type: 'string', default: '1' } },
  });
  const jobs = Number(values.jobs);
  if (!Number.isInteger(jobs) || jobs < 1) throw new Unfit(`--jobs ${values.jobs} is no number of jobs`);
  const unknown = positionals.find((part) => !MUTANTS.some(({ name }) => name.includes(part)));
  if (unknown !== undefined) throw new Unfit(`no mutant has "${unknown}" in its name`);
  const mutants = MUTANTS.filter(({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)));

  const dir = mkdtempSync(join(tmpdir(), 'mmmq-mutants-'));
  const workspaces: Workspace[] = [];
  const clear = (): void => {
    for (const workspace of workspaces) workspace.stop();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      clear();
      process.exit(signal === 'SIGINT' ? 130 : 143);
    });
  }
  try {
    for (let job = 0; job < Math.min(jobs, mutants.length); job += 1) workspaces.push(new Workspace(join(dir, String(job))));
    return await tryAll(workspaces, mutants);
  } finally {
    clear();
  }
}

async function tryAll(workspaces: readonly Workspace[], mutants: readonly Mutant[]): Promise<number> {
  for (const mutant of MUTANTS) workspaces[0]?.assertFits(mutant);
  const limitMs = await limitFromUnmutated(workspaces[0] as Workspace, mutants);
  const survived: string[] = [];
  const unfit: string[] = [];
  const left = [...mutants];
  await Promise.all(
    workspaces.map(async (workspace) => {
      for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
        const { name } = mutant;
        const begin = Date.now();
        const outcome = await judge(workspace, mutant, limitMs);
        const seconds = ((Date.now() - begin) / 1000).toFixed(1).padStart(6);
        if (outcome.kind === 'green') survived.push(name);
        if (outcome.kind === 'broken') unfit.push(name);
        console.log(`${WORDS[outcome.kind]} ${seconds} s  ${name}${outcome.kind === 'green' ? '' : `\n${indented(outcome.what)}`}`);
      }
    }),
  );
  for (const name of survived) console.log(`survived: ${name}`);
  for (const name of unfit) console.log(`no mutant, but a mistake: ${name}`);
  console.log(`mutants: ${mutants.length - survived.length - unfit.length} caught, ${survived.length} survived`);
  return unfit.length > 0 ? 2 : survived.length > 0 ? 1 : 0;
}

const WORDS: Readonly<Record<Outcome['kind'], string>> = {
  green: 'SURVIVED',
  violation: 'caught  ',
  hung: 'caught  ',
  broken: 'MISTAKE ',
};

/** What fails without a mutant proves nothing about one. @returns the time after which a run is taken for one without an end */
async function limitFromUnmutated(workspace: Workspace, mutants: readonly Mutant[]): Promise<number> {
  const begin = Date.now();
  const specs = new Set(mutants.map(({ insteadOfSweep }) => insteadOfSweep?.spec));
  for (const spec of specs) {
    const outcome = spec === undefined ? await workspace.sweep(3_600_000) : await workspace.spec(3_600_000, spec);
    if (outcome.kind !== 'green') throw new Unfit(`the tests fail without a mutant: ${outcome.what}`);
  }
  const tookMs = Date.now() - begin;
  console.log(`without a mutant everything is green, after ${(tookMs / 1000).toFixed(1)} s`);
  return Math.max(MIN_LIMIT_MS, tookMs * LIMIT_FACTOR);
}

function judge(workspace: Workspace, mutant: Mutant, limitMs: number): Promise<Outcome> {
  const { seenIn, insteadOfSweep } = mutant;
  return workspace.with(mutant, async () => {
    if (insteadOfSweep !== undefined) return workspace.spec(limitMs, insteadOfSweep.spec);
    if (seenIn !== undefined) {
      const outcome = await workspace.sweep(limitMs, seenIn);
      if (outcome.kind !== 'green') return outcome;
    }
    return workspace.sweep(limitMs);
  });
}

function indented(text: string): string {
  return stripVTControlCharacters(text).slice(0, MAX_TEXT).replaceAll(/^/gm, '           ');
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Unfit ? error.message : error);
  process.exitCode = 2;
}
