import { join } from 'node:path';
import { CLAIMS } from './claims/index.js';
import { benchOptions, endingWith, type Measured, writeResults } from './harness/command-line.js';
import { doubtsAbout, machineWith } from './harness/machine.js';
import { printFindings, printHead } from './harness/report.js';
import { FULL, TINY } from './harness/scale.js';
import { Workbench } from './harness/workbench.js';

/*
 * Measures the claims, all or those that are named, and prints one table for each. Ends with 0 when everything was measured, whether the bars
 * are met or not: that depends on the machine, and is printed. Ends with 1 when something could not be measured.
 */

/** bench/data, from bench/dist. */
const DEFAULT_DIR = join(import.meta.dirname, '../data');

async function main(): Promise<void> {
  const { claims, dir, json, isTiny } = benchOptions(
    'npm run bench',
    CLAIMS.map(({ name }) => name),
    DEFAULT_DIR,
  );
  const scale = isTiny ? TINY : FULL;
  const machine = machineWith(dir);
  const doubts = doubtsAbout(machine);
  printHead(machine, scale, doubts);

  let bench = new Workbench(scale, dir);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void bench.clear().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143)));
  }
  const measured: Measured[] = [];
  for (const claim of CLAIMS.filter(({ name }) => claims.includes(name))) {
    bench = new Workbench(scale, dir);
    try {
      const findings = await claim.measure(bench);
      measured.push({ claim, findings });
      printFindings(claim, findings);
    } finally {
      await bench.clear();
    }
  }
  if (json !== undefined) writeResults(json, measured, { machine, doubts, scale });
}

await endingWith(main);
