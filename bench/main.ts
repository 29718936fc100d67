import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CLAIMS } from './claims/index.js';
import type { Claim, Findings } from './harness/claim.js';
import { doubtsAbout, machineWith } from './harness/machine.js';
import { printFindings, printHead, verdictOf } from './harness/report.js';
import { FULL, TINY } from './harness/scale.js';
import { Workbench } from './harness/workbench.js';

/*
 * Measures the claims, all or those that are named, and prints one table for each. Ends with 0 when everything was measured, whether the bars
 * are met or not: that depends on the machine, and is printed. Ends with 1 when something could not be measured.
 */

const USAGE = `usage: npm run bench -- [claim …] [--dir <directory>] [--json <file>] [--tiny]

  claims    all, or some of ${CLAIMS.map(({ name }) => name).join(', ')}
  --dir     where the data is written meanwhile; on the disk that is to be measured (default: bench/data)
  --json    writes every figure of every round to a file as well
  --tiny    a few messages and one round: shows that everything works, and nothing else`;

/** bench/data, from bench/dist. */
const DEFAULT_DIR = join(import.meta.dirname, '../data');

class Misuse extends Error {}

interface Options {
  readonly claims: readonly Claim[];
  readonly dir: string;
  readonly json: string | undefined;
  readonly isTiny: boolean;
}

function optionsFrom(commandLine: readonly string[]): Options {
  try {
    const { values, positionals } = parseArgs({
      args: [...commandLine],
      allowPositionals: true,
      options: { dir: { type: 'string', default: DEFAULT_DIR }, json: { type: 'string' }, tiny: { type: 'boolean', default: false } },
    });
    const unknown = positionals.filter((name) => !CLAIMS.some((claim) => claim.name === name));
    if (unknown.length > 0) throw new Error(`there is no claim ${unknown.join(', ')}`);
    const claims = positionals.length === 0 ? CLAIMS : CLAIMS.filter(({ name }) => positionals.includes(name));
    return { claims, dir: values.dir, json: values.json, isTiny: values.tiny };
  } catch (error) {
    throw new Misuse(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  }
}

async function main(): Promise<void> {
  const { claims, dir, json, isTiny } = optionsFrom(process.argv.slice(2));
  const scale = isTiny ? TINY : FULL;
  const machine = machineWith(dir);
  const doubts = doubtsAbout(machine);
  printHead(machine, scale, doubts);

  let bench = new Workbench(scale, dir);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void bench.clear().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143)));
  }
  const measured: { readonly claim: Claim; readonly findings: Findings }[] = [];
  for (const claim of claims) {
    bench = new Workbench(scale, dir);
    try {
      const findings = await claim.measure(bench);
      measured.push({ claim, findings });
      printFindings(claim, findings);
    } finally {
      await bench.clear();
    }
  }
  if (json === undefined) return;
  const results = measured.map(({ claim: { name, about }, findings: { tables, bars } }) => ({
    name,
    about,
    tables,
    bars: bars.map((bar) => ({ ...bar, verdict: verdictOf(bar) })),
  }));
  writeFileSync(json, `${JSON.stringify({ at: new Date().toISOString(), machine, doubts, scale, claims: results }, undefined, 2)}\n`);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Misuse ? error.message : error);
  process.exitCode = error instanceof Misuse ? 2 : 1;
}
