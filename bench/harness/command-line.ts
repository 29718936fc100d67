import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Claim, Findings } from './claim.js';
import type { Machine } from './machine.js';
import { verdictOf } from './report.js';
import type { Scale } from './scale.js';

/** What a bench is told. */
export interface BenchOptions {
  /** The names of those to be measured. */
  readonly claims: readonly string[];
  readonly dir: string;
  readonly json: string | undefined;
  readonly isTiny: boolean;
}

/** A claim that was measured, and what came of it. */
export interface Measured {
  readonly claim: Claim;
  readonly findings: Findings;
}

class Misuse extends Error {}

/** @param script how it is called: `npm run …`. @param claims the names of all that there are */
export function benchOptions(script: string, claims: readonly string[], defaultDir: string): BenchOptions {
  try {
    const { values, positionals } = parseArgs({
      args: process.argv.slice(2),
      allowPositionals: true,
      options: { dir: { type: 'string', default: defaultDir }, json: { type: 'string' }, tiny: { type: 'boolean', default: false } },
    });
    const unknown = positionals.filter((name) => !claims.includes(name));
    if (unknown.length > 0) throw new Error(`there is no claim ${unknown.join(', ')}`);
    const wanted = positionals.length === 0 ? claims : claims.filter((name) => positionals.includes(name));
    return { claims: wanted, dir: values.dir, json: values.json, isTiny: values.tiny };
  } catch (error) {
    throw new Misuse(`${error instanceof Error ? error.message : String(error)}\n${usageOf(script, claims)}`);
  }
}

function usageOf(script: string, claims: readonly string[]): string {
  return `usage: ${script} -- [claim …] [--dir <directory>] [--json <file>] [--tiny]

  claims    all, or some of ${claims.join(', ')}
  --dir     where the data is written meanwhile; on the disk that is to be measured (default: bench/data)
  --json    writes every figure of every round to a file as well
  --tiny    a few messages and one round: shows that everything works, and nothing else`;
}

/** Every figure of every round, and what they are to be read with. */
export function writeResults(
  file: string,
  measured: readonly Measured[],
  context: { readonly machine: Machine; readonly doubts: readonly string[]; readonly scale: Scale } & Readonly<Record<string, unknown>>,
): void {
  const claims = measured.map(({ claim: { name, about }, findings: { tables, bars } }) => ({
    name,
    about,
    tables,
    bars: bars.map((bar) => ({ ...bar, verdict: verdictOf(bar) })),
  }));
  writeFileSync(file, `${JSON.stringify({ at: new Date().toISOString(), ...context, claims }, undefined, 2)}\n`);
}

/** Ends with 0 when everything was measured, whether the bars are met or not; with 1 when something could not be, and with 2 behind a wrong command line. */
export async function endingWith(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    console.error(error instanceof Misuse ? error.message : error);
    process.exitCode = error instanceof Misuse ? 2 : 1;
  }
}
