import type { Measurement } from '../../harness/measurement.js';
import type { Workbench } from '../../harness/workbench.js';
import type { Target } from './client.js';
import { GeneratorProcess } from './generator-process.js';

/** What the generator does with a peer. */
export interface Work {
  /** `single`: one message at a time. `batch`: several in one call. `deliver`: from publish to committed verdict. */
  readonly kind: 'single' | 'batch' | 'deliver';
  /** Publishes, or batches, under way at once. */
  readonly concurrency: number;
  /** Messages of one batch. */
  readonly batchSize: number;
  /** For `deliver`: messages that are published and not yet committed. */
  readonly outstanding: number;
}

export interface Order extends Work {
  readonly target: Target;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Puts a peer under load from a process of its own. All figures are per message, but the times of `batch`, which are those of a batch. */
export function putUnderLoad(bench: Workbench, target: Target, work: Work): Promise<Measurement> {
  const { warmUpMs, measureMs } = bench.scale;
  const order: Order = { ...work, target, warmUpMs, measureMs };
  return bench.adopt(() => new GeneratorProcess(order)).result;
}
