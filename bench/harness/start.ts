import { startBroker } from './broker.js';
import { peakMemoryMbOf } from './process-usage.js';
import type { ServerProcess } from './server-process.js';
import type { Workbench } from './workbench.js';

/** What a start takes, from the new process to the ready line. */
export interface Start {
  readonly startSeconds: number;
  /** The most memory that the process had until then. */
  readonly peakMemoryMb: number | undefined;
}

/** Starts a broker on a data directory, does something with it, and stops it. */
export async function startAnd<Result>(
  bench: Workbench,
  dataDir: string,
  action: (broker: ServerProcess) => Promise<Result>,
): Promise<Start & Result> {
  const broker = await startBroker(bench, dataDir);
  const start: Start = { startSeconds: broker.startMs / 1_000, peakMemoryMb: peakMemoryMbOf(broker.pid) };
  const result = await action(broker);
  await broker.stop();
  return { ...start, ...result };
}
