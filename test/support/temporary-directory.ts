import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
import { SYNCED_FILE_NAME } from '../../src/storage/index.js';

/** Gives each test directories of its own and removes them behind it. To be called at the top of a spec. */
export function temporaryDirectories(): () => Promise<string> {
  const made: string[] = [];
  afterEach(async () => {
    for (const dir of made.splice(0)) await rm(dir, { recursive: true, force: true });
  });
  return async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mmmq-test-'));
    made.push(dir);
    return dir;
  };
}

/**
 * Every file below a directory with its bytes as hexadecimal, every directory with a slash: two snapshots are equal when nothing changed. What a
 * broker writes down of how files stood is left out: it is another text for every directory.
 */
export async function snapshot(dir: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(dir.length + 1);
    if (entry.name === SYNCED_FILE_NAME) continue;
    if (entry.isDirectory()) found[`${name}/`] = '';
    else if (entry.isFile()) found[name] = (await readFile(path)).toString('hex');
    else found[name] = 'other';
  }
  return found;
}
