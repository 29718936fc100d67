import { RepairSweep } from './repair-sweep.js';
import { Sweep, type SweepOptions, type SweepReport } from './sweep.js';
import { WORKLOADS, type Workload } from './workloads.js';

/** How much is tried. */
export interface Extent {
  readonly crashes: Omit<SweepOptions, 'seed' | 'isBailing'>;
  /** Which part of the damages, and of the errors of a repair. */
  readonly repairShare: number;
  readonly repairErrorShare: number;
}

export const EVERYTHING: Extent = {
  crashes: {
    combinationsUpTo: 10,
    randomCount: 40,
    isTornEverywhere: true,
    errorShare: 1,
    errorInStartShare: 1,
    stepInStartShare: 1,
    crashesPerError: 1,
    isUsedOnBothWays: true,
  },
  repairShare: 1,
  repairErrorShare: 0.01,
};

/** What the suite has time for. */
export const BOUNDED: Extent = {
  crashes: {
    combinationsUpTo: 2,
    randomCount: 3,
    isTornEverywhere: false,
    errorShare: 0.01,
    errorInStartShare: 0.01,
    stepInStartShare: 0.1,
    crashesPerError: 1,
    isUsedOnBothWays: false,
  },
  repairShare: 0.008,
  repairErrorShare: 0.02,
};

/** What is done with a workload; each can be run in a process of its own. */
export const PART_NAMES = ['crashes', 'errors', 'repair'] as const;
export type PartName = (typeof PART_NAMES)[number];

export interface Part {
  readonly workload: string;
  readonly part: PartName;
}

/** Those whose files are of every kind: segments that are full, dead letters, checkpoints, several topics. */
const REPAIRED = ['rotation', 'dispatching', 'one producer, three topics'];

export const PARTS: readonly Part[] = WORKLOADS.flatMap(({ name }) =>
  PART_NAMES.filter((part) => part !== 'repair' || REPAIRED.includes(name)).map((part) => ({ workload: name, part })),
);

export interface PartRun {
  /** Grows while the part runs. */
  readonly report: SweepReport;
  /** Resolves at the end. @returns false where it gave up, as enough was found */
  run(): Promise<boolean>;
}

export function partRun({ workload: name, part }: Part, extent: Extent, seed: number, isBailing: boolean): PartRun {
  const workload = workloadOf(name);
  if (part === 'repair') {
    const sweep = new RepairSweep(workload, { seed, isBailing, share: extent.repairShare, errorShare: extent.repairErrorShare });
    return {
      report: sweep.report,
      run: async () => {
        await sweep.run();
        return !sweep.isCutShort;
      },
    };
  }
  // What follows an error is different each time: there one way of using on is enough.
  const isUsedOnBothWays = extent.crashes.isUsedOnBothWays && part !== 'errors';
  const sweep = new Sweep(workload, { ...extent.crashes, isUsedOnBothWays, seed, isBailing });
  return {
    report: sweep.report,
    run: async () => {
      if (part === 'errors') await sweep.errors();
      else {
        await sweep.crashes();
        await sweep.errorsInStarts();
      }
      return !sweep.isCutShort;
    },
  };
}

function workloadOf(name: string): Workload {
  const workload = WORKLOADS.find((candidate) => candidate.name === name);
  if (workload === undefined) throw new Error(`there is no workload ${name}`);
  return workload;
}
