import { readFile } from 'node:fs/promises';

const SOFT_LIMIT = /^Max open files\s+(\d+|unlimited)\s/m;

/**
 * How many files and connections this process may have open at once. Node.js raises it to the hard limit when it starts.
 * @returns undefined where the system does not say it in a file, as on macOS
 */
export async function openFileLimit(): Promise<number | undefined> {
  const limits = await readFile('/proc/self/limits', 'latin1').catch(() => '');
  const limit = SOFT_LIMIT.exec(limits)?.[1];
  if (limit === undefined) return undefined;
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}
