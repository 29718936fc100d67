import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServerProcess } from '../../harness/server-process.js';
import type { Workbench } from '../../harness/workbench.js';
import type { Target } from '../generator/client.js';
import { TOPIC } from '../generator/numbered-message.js';
import { freePort } from './free-port.js';

/** The built broker. The client libraries are no part of its package, so it cannot be found by its name here. */
const BROKER_MAIN = join(import.meta.dirname, '../../../../../dist/main.js');

/** The settings of the one dispatcher, as they stand in the settings file, without its name, host and patterns. */
export type DispatcherSettings = Readonly<Record<string, unknown>>;

/** Starts the broker as an operator does, `node dist/main.js`, with the default settings. */
export async function startBroker(bench: Workbench): Promise<ServerProcess> {
  return start(bench, []);
}

/** Starts a broker with one dispatcher, whose consumer is in the load generator. */
export async function startDispatchingBroker(bench: Workbench, settings: DispatcherSettings): Promise<Target> {
  const consumerPort = await freePort();
  const dispatcher = { name: 'bench-0', host: `http://127.0.0.1:${consumerPort}`, patterns: [TOPIC], ...settings };
  const broker = await start(bench, [dispatcher]);
  return { ...targetOf(broker), consumerPort };
}

export function targetOf({ url, pid }: ServerProcess): Target {
  return { client: 'broker', port: Number(new URL(url).port), pid, isSynced: true };
}

async function start(bench: Workbench, dispatchers: readonly DispatcherSettings[]): Promise<ServerProcess> {
  const cwd = await bench.directory();
  const configFile = join(cwd, 'mmmq.yaml');
  // JSON is YAML.
  await writeFile(configFile, JSON.stringify({ mmmq: { dispatchers } }));
  const env = { SERVER_PORT: '0', MMMQ_CONFIG_FILE: configFile, MMMQ_BROKER_STORAGE_ROOT_DIR: join(cwd, 'data') };
  return bench.serve(BROKER_MAIN, { cwd, env });
}
