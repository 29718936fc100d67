import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Claim, Findings, Table } from '../harness/claim.js';
import { doubtsAbout, machineWith } from '../harness/machine.js';
import { printFindings, printHead, tableText, verdictOf } from '../harness/report.js';
import { FULL, TINY, type Scale } from '../harness/scale.js';
import { Workbench } from '../harness/workbench.js';
import { CLAIMS } from './claims/index.js';
import { clientTable } from './clients/descriptions.js';
import { startPeers } from './servers/start-peers.js';
import { nameOf, type Missing, type Subject } from './servers/subject.js';

/*
 * Compares the broker with other ones that are on this machine. Ends with 0 when everything that is there was measured, whether the bars are
 * met or not; what is not there is named. Ends with 1 when something that is there could not be measured.
 */

const USAGE = `usage: npm run bench:peers -- [claim …] [--dir <directory>] [--json <file>] [--tiny]

  claims    all, or some of ${Object.keys(CLAIMS).join(', ')}
  --dir     where the data is written meanwhile; on the disk that is to be measured (default: bench/data)
  --json    writes every figure of every round to a file as well
  --tiny    a few messages and one round: shows that everything works, and nothing else`;

/** bench/data, from bench/peers/dist/peers. */
const DEFAULT_DIR = join(import.meta.dirname, '../../../data');
/** A JVM needs longer to warm up than what the other benches measure. */
const PEERS_FULL: Scale = { ...FULL, warmUpMs: 2_000 };
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

class Misuse extends Error {}

interface Options {
  readonly claims: readonly string[];
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
    const unknown = positionals.filter((name) => !(name in CLAIMS));
    if (unknown.length > 0) throw new Error(`there is no claim ${unknown.join(', ')}`);
    const claims = positionals.length === 0 ? Object.keys(CLAIMS) : positionals;
    return { claims, dir: values.dir, json: values.json, isTiny: values.tiny };
  } catch (error) {
    throw new Misuse(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  }
}

function settingsTable(subjects: readonly Subject[]): Table {
  const rows = subjects.map((subject) => [nameOf(subject), subject.version, subject.settings]);
  return { columns: ['peer', 'server', 'settings'], rows };
}

function printPeers(subjects: readonly Subject[], missing: readonly Missing[]): void {
  console.log(`\n${tableText(settingsTable(subjects))}\n\n${tableText(clientTable())}`);
  if (missing.length > 0) console.log();
  for (const { name, needs } of missing) console.log(`MISSING   ${name}: not measured, as it needs ${needs}`);
}

/** However often one asks, the servers stop in good order. */
function stopOnSignals(bench: Workbench): void {
  for (const [signal, exitCode] of Object.entries(SIGNALS)) {
    process.on(signal, () => {
      console.error(`stopped by ${signal}`);
      void bench.clear().finally(() => process.exit(exitCode));
    });
  }
}

async function main(): Promise<void> {
  const { claims, dir, json, isTiny } = optionsFrom(process.argv.slice(2));
  const scale = isTiny ? TINY : PEERS_FULL;
  const machine = machineWith(dir);
  const doubts = doubtsAbout(machine);
  printHead(machine, scale, doubts);

  const bench = new Workbench(scale, dir);
  stopOnSignals(bench);
  const measured: { readonly claim: Claim; readonly findings: Findings }[] = [];
  try {
    const { subjects, missing } = await startPeers(bench);
    printPeers(subjects, missing);
    for (const name of claims) {
      const claim = CLAIMS[name]?.(subjects);
      if (claim === undefined) continue;
      const findings = await claim.measure(bench);
      measured.push({ claim, findings });
      printFindings(claim, findings);
    }
    if (json === undefined) return;
    const peers = subjects.map((subject) => ({ name: nameOf(subject), version: subject.version, settings: subject.settings }));
    const results = measured.map(({ claim: { name, about }, findings: { tables, bars } }) => ({
      name,
      about,
      tables,
      bars: bars.map((bar) => ({ ...bar, verdict: verdictOf(bar) })),
    }));
    const document = { at: new Date().toISOString(), machine, doubts, scale, peers, clients: clientTable(), missing, claims: results };
    writeFileSync(json, `${JSON.stringify(document, undefined, 2)}\n`);
  } finally {
    await bench.clear();
  }
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Misuse ? error.message : error);
  process.exitCode = error instanceof Misuse ? 2 : 1;
}
