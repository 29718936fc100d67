import type { Workbench } from '../../harness/workbench.js';
import { freePort } from './free-port.js';
import { installed, versionOf } from './installed.js';
import { PeerProcess } from './peer-process.js';
import type { Manner, Started, Subject } from './subject.js';

const SETTINGS: Readonly<Record<Manner, { readonly args: readonly string[]; readonly text: string }>> = {
  synced: {
    args: ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''],
    text: 'appendonly yes, appendfsync always, no snapshots',
  },
  'as it comes': { args: [], text: 'snapshots alone: what was added since the last one is lost in a crash' },
};

/** Two servers, which Redis Streams and BullMQ use in turn. */
export async function startRedis(bench: Workbench): Promise<Started> {
  const command = await installed('redis-server', 'redis-server 6.2 or newer (Debian: redis-server)');
  const version = await versionOf(command, ['--version']);
  const subjects: Subject[] = [];
  for (const manner of ['synced', 'as it comes'] as const) {
    const port = await freePort();
    const cwd = await bench.directory();
    const { args, text } = SETTINGS[manner];
    const { pid } = await PeerProcess.start(bench, {
      command,
      args: ['--port', String(port), '--bind', '127.0.0.1', '--dir', cwd, ...args],
      cwd,
      ready: /Ready to accept connections/,
    });
    const common = { manner, version: `Redis ${version}`, settings: text };
    const target = { port, pid, isSynced: manner === 'synced' };
    subjects.push(
      { ...common, peer: 'Redis Streams', target: { ...target, client: 'redis-streams' } },
      { ...common, peer: 'BullMQ', target: { ...target, client: 'bullmq' } },
    );
  }
  return { subjects, missing: [] };
}
