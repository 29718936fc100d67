import type { Measurement } from './measurement.js';
import { programPath, runProgram } from './program.js';

export interface Lookup {
  readonly dataDir: string;
  readonly topic: string;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Reads single messages at random offsets with the package, in a process of its own. No broker may have the directory meanwhile. */
export function lookUp(lookup: Lookup): Promise<Measurement> {
  return runProgram(programPath('harness', 'lookup'), lookup);
}
