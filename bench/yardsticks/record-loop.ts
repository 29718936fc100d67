import type { Measurement } from '../harness/measurement.js';
import { programPath, runProgram } from '../harness/program.js';

export interface RecordLoop {
  readonly directory: string;
  /** `append`: one write for each record, and a sync at every so many. `read`: one read for each, of as many as `count` says. */
  readonly does: 'append' | 'read';
  readonly messageBytes: number;
  readonly syncEvery: number;
  readonly count: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Records of a length and a message in one file, one system call for each, and nothing else. What a queue in files could reach. */
export function runRecordLoop(loop: RecordLoop): Promise<Measurement> {
  return runProgram(programPath('yardsticks', 'record-loop'), loop);
}
