import type { Mutant } from '../mutant.js';

const insteadOfSweep = {
  spec: 'src/storage/disk-reserve.spec.ts',
  because: 'who is given the last room of a disk is no question of durability',
};

/** The room that is kept for dead letters and checkpoints. */
export const RESERVE_MUTANTS: readonly Mutant[] = [
  {
    name: 'what was stored before the disk was full is stored again with the reserve',
    insteadOfSweep,
    edits: [{ file: 'src/storage/file-topic-log.ts', find: 'payloads.slice(this.count - first)', replace: 'payloads' }],
  },
  {
    name: 'producers take the room that the reserve gave away',
    insteadOfSweep,
    edits: [{ file: 'src/storage/disk-reserve.ts', find: 'if (this.problem !== undefined) throw this.problem;', replace: '' }],
  },
];
