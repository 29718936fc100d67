import { execFile } from 'node:child_process';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Workbench } from '../../harness/workbench.js';
import { freePort } from './free-port.js';
import { installed, MissingError, versionOf } from './installed.js';
import { PeerProcess } from './peer-process.js';
import type { Started } from './subject.js';

const run = promisify(execFile);

const NEEDS = 'a PostgreSQL server, 13 or newer (Debian: postgresql)';
/** Where it is installed without being in PATH: Debian, Red Hat, Homebrew. */
const DIRECTORIES = ['/usr/lib/postgresql/*/bin', '/usr/pgsql-*/bin', '/opt/homebrew/opt/postgresql@*/bin'];
const OTHER_USER = 'postgres';
/** So large that no checkpoint comes into a measurement. */
const TUNING = { shared_buffers: '256MB', max_wal_size: '4GB', max_connections: '100' };
const TUNED = Object.entries(TUNING)
  .map((setting) => setting.join(' '))
  .join(', ');

/** One server, which PostgreSQL and pg-boss use in turn. */
export async function startPostgreSql(bench: Workbench): Promise<Started> {
  const initdb = await installed('initdb', NEEDS, DIRECTORIES);
  const command = await installed('postgres', NEEDS, [dirname(initdb), ...DIRECTORIES]);
  const version = await versionOf(command, ['--version']);
  const user = await otherUser();
  const cwd = await bench.directory();
  const dataDir = join(cwd, 'data');
  await mkdir(dataDir, { mode: 0o700 });
  if (user !== undefined) {
    await chmod(cwd, 0o711);
    await chown(dataDir, user.uid, user.gid);
  }
  await run(initdb, ['-D', dataDir, '-U', 'bench', '--auth=trust', '--encoding=UTF8', '--locale=C'], { cwd: '/', ...user });

  const port = await freePort();
  const parameters = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', synchronous_commit: 'on', ...TUNING };
  const { pid } = await PeerProcess.start(bench, {
    command,
    args: ['-D', dataDir, ...Object.entries(parameters).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    cwd: '/',
    ...(user && { user }),
    // It asks nobody to leave first.
    stopSignal: 'SIGINT',
    ready: /database system is ready to accept connections/,
  });
  const settings = `fsync and synchronous_commit on, as it comes; ${TUNED}`;
  const common = { manner: 'synced', version: `PostgreSQL ${version}`, settings } as const;
  return {
    subjects: [
      { ...common, peer: 'PostgreSQL', target: { client: 'postgresql', port, pid, isSynced: true } },
      { ...common, peer: 'pg-boss', target: { client: 'pg-boss', port, pid, isSynced: true } },
    ],
    missing: [],
  };
}

/** PostgreSQL refuses to run as root. @returns undefined where the bench does not */
async function otherUser(): Promise<{ readonly uid: number; readonly gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  try {
    const [uid, gid] = await Promise.all(['-u', '-g'].map(async (what) => Number((await run('id', [what, OTHER_USER])).stdout)));
    if (uid !== undefined && gid !== undefined) return { uid, gid };
  } catch {
    // There is no such user.
  }
  throw new MissingError(`a user named ${OTHER_USER}, as PostgreSQL refuses to run as root; or run the bench as another user`);
}
