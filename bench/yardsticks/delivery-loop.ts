import type { Measurement } from '../harness/measurement.js';
import { programPath, runProgram } from '../harness/program.js';

export interface DeliveryLoop {
  readonly directory: string;
  readonly consumerUrl: string;
  readonly messageBytes: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** POST to the consumer, checkpoint write, fdatasync, one message after the other, and nothing else. What one dispatcher could reach. */
export function runDeliveryLoop(loop: DeliveryLoop): Promise<Measurement> {
  return runProgram(programPath('yardsticks', 'delivery-loop'), loop);
}
