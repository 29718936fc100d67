import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { LAST, makeDataDirectory, idx, TOPIC } from '../../test/support/damaged-directory.js';
import { fileEngine } from '../../test/support/file-engine.js';
import { temporaryDirectories } from '../../test/support/temporary-directory.js';

const MAIN = join(import.meta.dirname, '../../dist/cli/main.js');
const newDirectory = temporaryDirectories();

/** Runs the built program. */
function run(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: run "npm test", or first "npm run build"`);
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...words], (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

describe('the program mmmq', () => {
  it('ends with 0, 1 and 2, prints one JSON document with --json, and mends what a refused start named it for', async () => {
    const rootDir = join(await newDirectory(), 'data');
    await makeDataDirectory(rootDir);
    expect(await run('verify', rootDir)).toMatchObject({ code: 0, stderr: '' });
    await rm(join(rootDir, idx(LAST)));

    const refusal = await fileEngine(rootDir)
      .engine.open()
      .then(
        () => '',
        (error: Error) => error.message,
      );
    const [, command = ''] = /"npx mmmq (repair [^"]+)"/.exec(refusal) ?? [];
    expect(command).toBe(`repair ${rootDir}`);

    const verified = await run('verify', rootDir, '--json');
    expect(verified).toMatchObject({ code: 1, stderr: '' });
    expect(JSON.parse(verified.stdout)).toMatchObject({ topics: [{ topic: TOPIC }] });
    expect(await run(...command.split(' '))).toMatchObject({ code: 1 });
    expect(await run(...command.split(' '), '--write')).toMatchObject({ code: 0, stderr: '' });
    expect(await run('verify', rootDir)).toMatchObject({ code: 0 });
    const { engine } = fileEngine(rootDir);
    expect((await engine.open()).map(({ count }) => count)).toEqual([5]);

    const inUse = await run('dump', rootDir, TOPIC);
    expect(inUse).toMatchObject({ code: 2, stdout: '' });
    expect(inUse.stderr).toContain(`open (process ${process.pid})`);
    await engine.close();
    expect(await run('--help')).toMatchObject({ code: 0, stdout: expect.stringMatching(/verify[^]*repair[^]*dump/) });
  }, 60_000);

  it('ends well when its reader has seen enough', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    const topic = await engine.create(TOPIC);
    await topic.append(Array.from({ length: 5000 }, () => Buffer.from(`{"m":"${'x'.repeat(500)}"}`)));
    await engine.close();
    const program = spawn(process.execPath, [MAIN, 'dump', rootDir, TOPIC], { stdio: ['ignore', 'pipe', 'pipe'] });
    let errors = '';
    program.stderr.on('data', (chunk) => (errors += String(chunk)));
    await once(program.stdout, 'data');
    program.stdout.destroy();
    expect(await once(program, 'close')).toEqual([0, null]);
    expect(errors).toBe('');
  }, 60_000);
});
