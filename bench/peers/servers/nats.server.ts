import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Workbench } from '../../harness/workbench.js';
import { freePort } from './free-port.js';
import { installed, MissingError, versionOf } from './installed.js';
import { PeerProcess } from './peer-process.js';
import type { Manner, Missing, Started, Subject } from './subject.js';

const run = promisify(execFile);

/** The first one that knows `sync_interval`. */
const SYNCS_ITSELF = '2.10';
const NEEDS_SYNC = 'nats-server 2.10 or newer; or, for an older one, root and a file system on which chattr +S has an effect';

/** Two servers: one that syncs, and one with the defaults. */
export async function startNats(bench: Workbench): Promise<Started> {
  const command = await installed('nats-server', 'nats-server 2.9 or newer (Debian: nats-server)', ['/usr/sbin']);
  const version = await versionOf(command, ['--version']);
  const subjects = [await start(bench, command, version, 'as it comes')];
  const missing: Missing[] = [];
  try {
    subjects.unshift(await start(bench, command, version, 'synced'));
  } catch (error) {
    if (!(error instanceof MissingError)) throw error;
    missing.push({ name: 'NATS JetStream, synced', needs: error.needs });
  }
  return { subjects, missing };
}

async function start(bench: Workbench, command: string, version: string, manner: Manner): Promise<Subject> {
  const cwd = await bench.directory();
  const store = join(cwd, 'store');
  await mkdir(store);
  const syncs =
    manner === 'synced' ? await syncsOf(version, store) : { option: '', text: 'one copy; written before the answer, synced later' };
  const port = await freePort();
  const config = join(cwd, 'nats.conf');
  await writeFile(config, `host: 127.0.0.1\nport: ${port}\njetstream { store_dir: ${JSON.stringify(store)} ${syncs.option} }\n`);
  const { pid } = await PeerProcess.start(bench, { command, args: ['-c', config], cwd, ready: /Server is ready/ });
  const target = { client: 'nats', port, pid, isSynced: manner === 'synced' } as const;
  return { peer: 'NATS JetStream', manner, version: `NATS ${version}`, settings: syncs.text, target };
}

async function syncsOf(version: string, store: string): Promise<{ readonly option: string; readonly text: string }> {
  if (version.localeCompare(SYNCS_ITSELF, 'en', { numeric: true }) >= 0) {
    return { option: ', sync_interval: always', text: 'one copy, sync_interval: always' };
  }
  // The files in a directory with this attribute have it too, and each write to them returns when it is on the disk.
  await run('chattr', ['+S', store]).catch(() => {
    throw new MissingError(NEEDS_SYNC);
  });
  return { option: '', text: 'one copy; this version has no sync_interval, so its files have the attribute S: each write is synced' };
}
