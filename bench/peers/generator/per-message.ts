import type { Measurement } from '../../harness/measurement.js';

/** A batch is one operation to a stopwatch, and many messages to the reader. The times stay those of a batch. */
export function perMessage(measurement: Measurement, messages: number): Measurement {
  const { perSecond, cpuMicros } = measurement;
  return { ...measurement, perSecond: perSecond * messages, cpuMicros: cpuMicros === undefined ? undefined : cpuMicros / messages };
}
