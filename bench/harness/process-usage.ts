import { readFileSync } from 'node:fs';

/** Linux counts CPU time in hundredths of a second for those who read it. */
const TICK_MS = 10;

/** CPU time of a process with all its threads since it began, in milliseconds; undefined where there is no /proc. */
export function cpuMsOf(pid: number): number | undefined {
  const stat = procFile(pid, 'stat');
  if (stat === undefined) return undefined;
  // The second field is the name in parentheses, with spaces in it perhaps. What follows begins with the third.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** CPU time between two readings; undefined where it is too little to be told, or there is none. */
export function cpuMsBetween(before: number | undefined, after: number | undefined): number | undefined {
  return before === undefined || after === undefined || after <= before ? undefined : after - before;
}

/** The most memory that a process has had at a time, in megabytes (10⁶ bytes); undefined where there is no /proc. */
export function peakMemoryMbOf(pid: number): number | undefined {
  const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(procFile(pid, 'status') ?? '')?.[1];
  return kibibytes === undefined ? undefined : (Number(kibibytes) * 1_024) / 1e6;
}

function procFile(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return undefined;
  }
}
