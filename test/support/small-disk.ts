import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrokerProcess } from './broker-process.js';

const FILE_SYSTEM_BYTES = 40 * 1024 * 1024;
/** What a file leaves free that stands in the way until there is to be room. */
const LEFT_BYTES = 128 * 1024;
/** `ulimit -f` counts in units of 512 bytes. */
const QUOTA_UNITS = 128;

/** A place for a data directory that is soon full, and has room again when the test says so. */
export interface SmallDisk {
  /** What it is, for the test's output. */
  readonly kind: string;
  /** How the broker answers a publish that finds no room on it. */
  readonly fullStatus: number;
  /** Whether the broker can see that it is full, and that it is no longer. A limit to a process is met by writing alone. */
  readonly isSeen: boolean;
  readonly dir: string;
  /** The command under which the broker is to run. */
  readonly under: readonly string[];
  makeRoom(broker: BrokerProcess): Promise<void>;
  remove(): void;
}

function mountProblem(): string | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'mmmq-test-'));
  try {
    const { error, status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir], { encoding: 'utf8' });
    if (error !== undefined) return error.message;
    if (status !== 0) return stderr.trim();
    execFileSync('umount', [dir]);
    return undefined;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function quotaProblem(): string | undefined {
  const { error } = spawnSync('prlimit', ['--version']);
  return error?.message;
}

/** Which kind of small disk can be had here. */
export function smallDisks():
  | { readonly make: (dir: string) => Promise<SmallDisk>; readonly kind: string; readonly isMounted: boolean }
  | { readonly problem: string } {
  const mounting = mountProblem();
  if (mounting === undefined) return { make: mountedDisk, kind: 'a tmpfs', isMounted: true };
  const limiting = quotaProblem();
  const kind = `a limit to the size of files, as no tmpfs can be mounted (${mounting})`;
  if (limiting === undefined) return { make: limitedFiles, kind, isMounted: false };
  return { problem: `${mounting}; ${limiting}` };
}

/** A file system of its own. It must be larger than one pass to the log, without which a broker does not call a disk well. */
async function mountedDisk(parent: string): Promise<SmallDisk> {
  const dir = join(parent, 'disk');
  await mkdir(dir);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${FILE_SYSTEM_BYTES}`, 'tmpfs', dir]);
  const remove = (): void => {
    // Lazily where it is in use, so that it is gone in any case.
    if (spawnSync('umount', [dir]).status !== 0) execFileSync('umount', ['-l', dir]);
  };
  const filler = join(dir, 'filler');
  try {
    const { bavail, bsize } = await statfs(dir);
    await writeFile(filler, Buffer.alloc(bavail * bsize - LEFT_BYTES));
  } catch (error) {
    remove();
    throw error;
  }
  return {
    kind: `a tmpfs of ${FILE_SYSTEM_BYTES} bytes, ${LEFT_BYTES} of them free`,
    fullStatus: 507,
    isSeen: true,
    dir,
    under: [],
    makeRoom: async () => rmSync(filler),
    remove,
  };
}

/** The kernel lets a process write no file beyond a size. Node ignores the signal (SIGXFSZ) that comes with it, so that a write fails. */
async function limitedFiles(parent: string): Promise<SmallDisk> {
  return {
    kind: `a limit of ${QUOTA_UNITS * 512} bytes to each file that the broker writes`,
    fullStatus: 503,
    isSeen: false,
    dir: parent,
    under: ['sh', '-c', `ulimit -S -f ${QUOTA_UNITS}; exec "$@"`, 'sh'],
    makeRoom: async (broker) => {
      execFileSync('prlimit', ['--pid', String(broker.pid), '--fsize=unlimited']);
    },
    remove: () => undefined,
  };
}
