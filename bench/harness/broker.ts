import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ServerProcess } from './server-process.js';
import type { Workbench } from './workbench.js';

/** The built broker, beside the entrance of the package. */
const BROKER_MAIN = fileURLToPath(new URL('main.js', import.meta.resolve('mmmq')));

/** Dispatchers `bench-0`, `bench-1`, … that take all topics of the bench. */
export interface BrokerDispatchers {
  readonly count: number;
  readonly consumerUrl: string;
  /** So many messages in a request at most; each alone where it is left out. */
  readonly batchMaxMessages?: number | undefined;
}

export function dispatcherOf(index: number): string {
  return `bench-${index}`;
}

/** Starts the broker as an operator does, `node dist/main.js`, with the default settings but for batches. @param dataDir as it stands */
export async function startBroker(bench: Workbench, dataDir: string, dispatchers?: BrokerDispatchers): Promise<ServerProcess> {
  const workDir = await bench.directory();
  const configFile = join(workDir, 'mmmq.yaml');
  const definitions = Array.from({ length: dispatchers?.count ?? 0 }, (_, index) => ({
    name: dispatcherOf(index),
    host: dispatchers?.consumerUrl,
    patterns: ['bench.*'],
    ...(dispatchers?.batchMaxMessages !== undefined && { batch: { 'max-messages': dispatchers.batchMaxMessages } }),
  }));
  // JSON is YAML.
  await writeFile(configFile, JSON.stringify({ mmmq: { dispatchers: definitions } }));
  const env = { SERVER_PORT: '0', MMMQ_CONFIG_FILE: configFile, MMMQ_BROKER_STORAGE_ROOT_DIR: dataDir };
  return bench.serve(BROKER_MAIN, { cwd: workDir, env });
}
