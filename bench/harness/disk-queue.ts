import type { Measurement } from './measurement.js';
import { programPath, runProgram } from './program.js';

export interface DiskQueueRun {
  readonly directory: string;
  /** `put`: by so many producers, each of which waits for its own. `take`: as many as `count` says, one after the other. */
  readonly does: 'put' | 'take';
  readonly producers: number;
  readonly messageBytes: number;
  readonly syncEvery: number;
  readonly count: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Uses a disk queue of the package, in a process of its own. */
export function runDiskQueue(run: DiskQueueRun): Promise<Measurement> {
  return runProgram(programPath('harness', 'disk-queue'), run);
}
