import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os';
import { resolve, sep } from 'node:path';

/** What the figures were measured on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly system: string;
  readonly node: string;
  /** Of the measured data: type and device, or `unknown` where the system does not tell. */
  readonly fileSystem: string;
  /** Processes that wanted to run in the last minute, before the bench began. */
  readonly load: number;
}

/** File systems in memory. A sync costs nothing there, so the figures say nothing. */
const IN_MEMORY = new Set(['tmpfs', 'ramfs']);

export function machineWith(dataDir: string): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 1e9),
    system: `${type()} ${release()}`,
    node: process.version,
    fileSystem: fileSystemOf(resolve(dataDir)),
    load: Math.round((loadavg()[0] ?? 0) * 10) / 10,
  };
}

/** What makes the figures worthless, or at least doubtful. */
export function doubtsAbout({ fileSystem, load, cores }: Machine): readonly string[] {
  const doubts: string[] = [];
  if (IN_MEMORY.has(fileSystem.split(' ')[0] ?? '')) doubts.push('the data is in memory: choose a directory on a disk with --dir');
  if (load > cores / 4) doubts.push(`others are at work on this machine: a load of ${load} before the bench began`);
  return doubts;
}

function fileSystemOf(path: string): string {
  let mounts: string;
  try {
    mounts = readFileSync('/proc/self/mounts', 'utf8');
  } catch {
    return 'unknown';
  }
  let longest = '';
  let found = 'unknown';
  for (const line of mounts.split('\n')) {
    const [device = '', mountPoint = '', fileSystemType = ''] = line.split(' ');
    const isAbove = mountPoint === '/' || path === mountPoint || path.startsWith(mountPoint + sep);
    if (!isAbove || mountPoint.length < longest.length) continue;
    longest = mountPoint;
    found = `${fileSystemType} on ${device}`;
  }
  return found;
}
