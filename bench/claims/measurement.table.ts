import type { Cell } from '../harness/claim.js';
import type { Measurement } from '../harness/measurement.js';
import { seriesOf } from '../harness/statistics.js';

export const MEASUREMENT_COLUMNS = ['per second', 'p50 ms', 'p99 ms', 'CPU µs each', 'generator, cores'] as const;

/** The cells below {@link MEASUREMENT_COLUMNS}. */
export function measurementCells(rounds: readonly Measurement[]): readonly Cell[] {
  return [
    seriesOf(rounds, ({ perSecond }) => perSecond),
    seriesOf(rounds, ({ p50Ms }) => p50Ms),
    seriesOf(rounds, ({ p99Ms }) => p99Ms),
    seriesOf(rounds, ({ cpuMicros }) => cpuMicros),
    seriesOf(rounds, ({ generatorCpuShare }) => generatorCpuShare),
  ];
}
