import type { Measurement } from './measurement.js';
import { programPath, runProgram } from './program.js';
import type { ServerProcess } from './server-process.js';

/** A closed loop: each client sends its next publish when the last one is answered. */
export interface Workload {
  readonly clients: number;
  /** The size of a request's body. */
  readonly messageBytes: number;
  /** Messages go to so many topics in turn. */
  readonly topics: number;
  /** So many messages in one request, one per line, for `/messages/batch`. Default: one message, for `/messages`. */
  readonly messagesPerRequest?: number;
}

/** What the generator is given. */
export interface Load extends Workload {
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly url: string;
  readonly serverPid: number;
}

const GENERATOR = programPath('harness', 'load-generator');

/** Publishes to a server from a process of its own. @throws {Error} when an answer is not 200 */
export function publishTo(
  server: ServerProcess,
  { warmUpMs, measureMs }: Pick<Load, 'warmUpMs' | 'measureMs'>,
  workload: Workload,
  path = '/messages',
): Promise<Measurement> {
  const load: Load = { ...workload, warmUpMs, measureMs, url: `${server.url}${path}`, serverPid: server.pid };
  return runProgram(GENERATOR, load);
}
