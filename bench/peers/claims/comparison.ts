import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { MEASUREMENT_COLUMNS, measurementCells } from '../../claims/measurement.table.js';
import type { Findings } from '../../harness/claim.js';
import type { Measurement } from '../../harness/measurement.js';
import { interleaved } from '../../harness/rounds.js';
import { ratioOf } from '../../harness/statistics.js';
import type { Workbench } from '../../harness/workbench.js';
import { putUnderLoad, type Work } from '../generator/generator.js';
import { nameOf, type PeerName, type Subject } from '../servers/subject.js';

const run = promisify(execFile);

export interface Comparison {
  /** The load in a few words. */
  readonly title: string;
  readonly work: Work;
  /** The broker, in several ways perhaps. The bars are about the first one. */
  readonly ours: Readonly<Record<string, () => Promise<Measurement>>>;
  readonly subjects: readonly Subject[];
  /** Those that the broker claims to be before, when they sync. One that is not on this machine has a bar all the same. */
  readonly before: readonly PeerName[];
}

/** Measures the broker and the peers in turn. A turn begins when the disk has nothing left to do from the one before. */
export async function compare(bench: Workbench, { title, work, ours, subjects, before }: Comparison): Promise<Findings> {
  const peers = subjects.map((subject) => [nameOf(subject), () => putUnderLoad(bench, subject.target, work)] as const);
  const turns = [...Object.entries(ours), ...peers].map(([name, measure]) => [name, () => turnOf(measure)] as const);
  const results: Record<string, Measurement[]> = await interleaved(bench.scale.rounds, title, Object.fromEntries(turns));

  const brokers = Object.keys(ours);
  const rows = Object.entries(results).map(([name, rounds]) => [
    name,
    ...measurementCells(rounds),
    ...brokers.map((broker) => ratioOf(results[broker] ?? [], rounds, ({ perSecond }) => perSecond)),
  ]);
  const [first = ''] = brokers;
  const bars = before.map((peer) => {
    const name = nameOf({ peer, manner: 'synced' });
    const rounds = results[name];
    const measured = rounds && ratioOf(results[first] ?? [], rounds, ({ perSecond }) => perSecond);
    return { what: `${first}: per second / ${name}`, measured, rule: { atLeast: 1 } };
  });
  return { tables: [{ columns: [title, ...MEASUREMENT_COLUMNS, ...brokers.map((broker) => `${broker} / this`)], rows }], bars };
}

async function turnOf(measure: () => Promise<Measurement>): Promise<Measurement> {
  await run('sync');
  return measure();
}
