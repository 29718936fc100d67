import type { Workload } from './load-generator.js';

/** The workload that the bars about many clients are about. */
export const MAIN_WORKLOAD: Workload = { clients: 64, messageBytes: 256, topics: 1 };

/** How much is measured. */
export interface Scale {
  readonly name: 'full' | 'tiny';
  /** Every subject is measured once per round, one after the other. */
  readonly rounds: number;
  /** Each measurement begins with so much that is not counted. */
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Of the publishes of many clients; the main one is among them. */
  readonly workloads: readonly Workload[];
  /** The sizes of the stored topics, ascending. */
  readonly storedCounts: readonly number[];
  /** Topics in the data directory that a start finds. */
  readonly topicCount: number;
  /** Messages that wait for a dispatcher while others are published, and for one that takes them in batches. */
  readonly backlogCount: number;
  /** Messages that wait for the dispatchers whose speed is measured. */
  readonly deliveryCount: number;
}

export const FULL: Scale = {
  name: 'full',
  rounds: 3,
  warmUpMs: 1_000,
  measureMs: 2_000,
  workloads: [
    { ...MAIN_WORKLOAD, clients: 8 },
    MAIN_WORKLOAD,
    { ...MAIN_WORKLOAD, clients: 256 },
    { ...MAIN_WORKLOAD, messageBytes: 1_024 },
    { ...MAIN_WORKLOAD, topics: 100 },
    { clients: 256, messageBytes: 1_024, topics: 100 },
  ],
  storedCounts: [10_000, 1_000_000, 10_000_000],
  topicCount: 10_000,
  backlogCount: 1_000_000,
  deliveryCount: 200_000,
};

/** Enough to see that everything works; the figures say nothing. */
export const TINY: Scale = {
  name: 'tiny',
  rounds: 1,
  warmUpMs: 20,
  measureMs: 100,
  workloads: [MAIN_WORKLOAD, { clients: 8, messageBytes: 1_024, topics: 10 }],
  storedCounts: [1_000],
  topicCount: 10,
  backlogCount: 20_000,
  deliveryCount: 20_000,
};
