import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A program is not installed, or not in the form that is needed. */
export class MissingError extends Error {
  /** @param needs what to install, as the end of "needs …" */
  constructor(readonly needs: string) {
    super(`needs ${needs}`);
  }
}

/**
 * The path of an installed program: in one of these directories, or in those of PATH. A directory may have one `*` as a whole name.
 * @throws {MissingError}
 */
export async function installed(program: string, needs: string, directories: readonly string[] = []): Promise<string> {
  const expanded = (await Promise.all(directories.map(expand))).flat();
  for (const directory of [...expanded, ...(process.env['PATH'] ?? '').split(delimiter)]) {
    const path = join(directory, program);
    if (await canRun(path)) return path;
  }
  throw new MissingError(needs);
}

/** The first thing in the output of a command that looks like a version. */
export async function versionOf(command: string, args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await run(command, args);
  return /\d+(\.\d+)+/.exec(stdout + stderr)?.[0] ?? 'unknown';
}

/** The highest version comes first. */
async function expand(directory: string): Promise<string[]> {
  const [before = '', after] = directory.split('/*');
  if (after === undefined) return [directory];
  const names = await readdir(before).catch(() => []);
  return names.toSorted((a, b) => b.localeCompare(a, 'en', { numeric: true })).map((name) => join(before, name, after));
}

async function canRun(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
