import { readdirSync, readFileSync } from 'node:fs';
import { cpuMsOf } from '../../harness/process-usage.js';

/**
 * CPU time of a process and of all processes below it, in milliseconds; undefined where there is no /proc. A process that has ended
 * counts no more.
 */
export function cpuMsOfTree(pid: number): number | undefined {
  const own = cpuMsOf(pid);
  if (own === undefined) return undefined;
  return descendantsOf(pid).reduce((sum, descendant) => sum + (cpuMsOf(descendant) ?? 0), own);
}

function descendantsOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const parent = /^\d+$/.test(name) ? parentOf(Number(name)) : undefined;
    if (parent === undefined) continue;
    const siblings = children.get(parent) ?? [];
    children.set(parent, [...siblings, Number(name)]);
  }
  const found: number[] = [];
  for (let next = children.get(pid) ?? []; next.length > 0; next = next.flatMap((child) => children.get(child) ?? [])) found.push(...next);
  return found;
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    // It has ended meanwhile.
    return undefined;
  }
}
