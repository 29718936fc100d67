import { join } from 'node:path';
import type { Table } from '../harness/claim.js';
import { benchOptions, endingWith, type Measured, writeResults } from '../harness/command-line.js';
import { doubtsAbout, machineWith } from '../harness/machine.js';
import { printFindings, printHead, tableText } from '../harness/report.js';
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

/** bench/data, from bench/peers/dist/peers. */
const DEFAULT_DIR = join(import.meta.dirname, '../../../data');
/** A JVM needs longer to warm up than what the other benches measure. */
const PEERS_FULL: Scale = { ...FULL, warmUpMs: 2_000 };
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

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
  const { claims, dir, json, isTiny } = benchOptions('npm run bench:peers', Object.keys(CLAIMS), DEFAULT_DIR);
  const scale = isTiny ? TINY : PEERS_FULL;
  const machine = machineWith(dir);
  const doubts = doubtsAbout(machine);
  printHead(machine, scale, doubts);

  const bench = new Workbench(scale, dir);
  stopOnSignals(bench);
  const measured: Measured[] = [];
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
    writeResults(json, measured, { machine, doubts, scale, peers, clients: clientTable(), missing });
  } finally {
    await bench.clear();
  }
}

await endingWith(main);
