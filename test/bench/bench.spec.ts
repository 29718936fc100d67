import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryDirectories } from '../support/temporary-directory.js';

const BENCH = join(import.meta.dirname, '../../bench/dist/main.js');
const CLAIMS = ['latency', 'publish', 'delivery', 'backlog', 'stored', 'topics', 'disk-queue'];
const TIMEOUT_MS = 300_000;

interface Results {
  readonly scale: { readonly rounds: number };
  readonly claims: readonly {
    readonly name: string;
    readonly tables: readonly { readonly columns: readonly string[]; readonly rows: readonly (readonly unknown[])[] }[];
    readonly bars: readonly { readonly what: string; readonly measured?: readonly unknown[]; readonly verdict: string }[];
  }[];
}

const run = promisify(execFile);
const newDirectory = temporaryDirectories();

/** Whatever the figures are, they must be figures: one per round, above zero. */
function expectSeries(series: unknown, rounds: number): void {
  expect(series).toHaveLength(rounds);
  for (const value of series as readonly unknown[]) expect(value).toBeGreaterThan(0);
}

describe('the bench, in its tiny form', () => {
  beforeAll(() => {
    if (!existsSync(BENCH))
      throw new Error(`${BENCH} is missing: run "npm test", or first "npm run build && npx tsc -p bench/tsconfig.json"`);
  });

  it(
    'measures every claim, prints each bar with its verdict, writes all figures to a file, and leaves nothing behind',
    async () => {
      const dir = await newDirectory();
      const json = join(await newDirectory(), 'results.json');
      const { stdout } = await run(process.execPath, [BENCH, '--tiny', '--dir', dir, '--json', json]);

      const { claims, scale } = JSON.parse(await readFile(json, 'utf8')) as Results;
      expect(claims.map(({ name }) => name)).toEqual(CLAIMS);
      for (const { tables, bars } of claims) {
        expect(tables.length).toBeGreaterThan(0);
        for (const { columns, rows } of tables) {
          expect(rows.length).toBeGreaterThan(1);
          for (const row of rows) {
            expect(row).toHaveLength(columns.length);
            const figures = row.filter((cell) => Array.isArray(cell));
            expect(figures.length).toBeGreaterThan(1);
            for (const figure of figures) expectSeries(figure, scale.rounds);
          }
        }
        expect(bars.length).toBeGreaterThan(0);
        for (const { what, measured, verdict } of bars) {
          if (verdict !== 'not measured') expectSeries(measured, scale.rounds);
          expect(['met', 'NOT MET', 'not measured']).toContain(verdict);
          const line = stdout.split('\n').find((text) => text.includes(what));
          expect(line).toMatch(new RegExp(` [≤≥] [\\d.]+ +${verdict}$`));
        }
      }
      expect(stdout).toContain(process.version);
      expect(await readdir(dir)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it('refuses a claim that it does not know, and names those that it knows', async () => {
    const refusal = run(process.execPath, [BENCH, 'speed', '--dir', await newDirectory()]);
    await expect(refusal).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(new RegExp(`^there is no claim speed\\n.*${CLAIMS.join(', ')}\\n`, 's')),
    });
  });
});
