import type { Measurement } from '../harness/measurement.js';
import { programPath, runProgram } from '../harness/program.js';

export interface AppendLoop {
  readonly directory: string;
  /** 1: the messages alone. 2: the messages, then their positions, in this order, each synced. */
  readonly files: 1 | 2;
  readonly messageBytes: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Yardstick L: append + fdatasync, one message after the other, and nothing else. What the disk allows one producer. */
export function runAppendLoop(loop: AppendLoop): Promise<Measurement> {
  return runProgram(programPath('yardsticks', 'append-loop'), loop);
}
