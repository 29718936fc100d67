import { execFileSync } from 'node:child_process';
import { appendFile, cp, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';
import { PASS_MAX_BYTES, systemClock } from '../core/index.js';
import {
  append,
  checkpoint,
  DAMAGES,
  ENTRY,
  idx,
  int64,
  LAST,
  makeDataDirectory,
  MESSAGES,
  mmm,
  OLDER,
  overwrite,
  TOPIC,
} from '../../test/support/damaged-directory.js';
import { FaultyFileSystem, type Operation } from '../../test/support/faulty-file-system.js';
import { fileEngine, readTexts } from '../../test/support/file-engine.js';
import { mmmq } from '../../test/support/recording-terminal.js';
import { snapshot, temporaryDirectories } from '../../test/support/temporary-directory.js';

const newDirectory = temporaryDirectories();

async function dataDirectory(): Promise<string> {
  const rootDir = join(await newDirectory(), 'data');
  await makeDataDirectory(rootDir);
  return rootDir;
}

/** What a start on the directory serves, and what it warns of. */
async function started(rootDir: string): Promise<{ texts: (string | undefined)[]; warnings: string[]; committed: number }> {
  const { engine, log } = fileEngine(rootDir, { segmentMaxBytes: 3 * ENTRY });
  const [topic] = await engine.open();
  if (topic === undefined) throw new Error('no topic');
  const texts = await readTexts(topic);
  const committed = await topic.committed('order-dispatcher');
  // And it can be used on.
  expect((await topic.append([Buffer.from('{}')])).offsets).toEqual([texts.length]);
  await engine.close();
  return { texts, warnings: log.filter((line) => line.startsWith('warn')), committed };
}

/** The directories beside the data directory that hold what was copied aside. */
async function asideOf(rootDir: string): Promise<string[]> {
  const names = await readdir(dirname(rootDir));
  return names.filter((name) => name.startsWith('data.repair-')).map((name) => join(dirname(rootDir), name));
}

describe('repair', () => {
  it.each(DAMAGES)(
    'of $found: says what it would do, does it with --write, and the start succeeds',
    async ({ make, repaired, loses, mayLose }) => {
      const rootDir = await dataDirectory();
      await make(rootDir);
      const before = await snapshot(rootDir);

      const dry = await mmmq(['repair', rootDir]);
      expect(dry.code).toBe(1);
      expect(await snapshot(rootDir)).toEqual(before);
      expect(await asideOf(rootDir)).toEqual([]);
      if (repaired === undefined) {
        expect(dry.output).toMatch(/not repaired: .*\n {4}what remains to you: .*(mv |truncate )/);
        expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({ code: 1 });
        expect(await snapshot(rootDir)).toEqual(before);
        return;
      }
      expect(dry.output).toContain(`Nothing was changed. To do it: npx mmmq repair ${rootDir} --write`);
      expect(dry.output).toMatch(/ {2}would (rebuild|cut|make) /);
      for (const [word, what] of [
        ['lost', loses],
        ['may be lost', mayLose],
      ] as const) {
        if (what === undefined) expect(dry.output).not.toContain(`\n  ${word}: `);
        else expect(dry.output).toMatch(new RegExp(`\n {2}${word}: ${what.source}`));
      }

      const written = await mmmq(['repair', rootDir, '--write']);
      expect(written.code).toBe(0);
      const [aside = ''] = await asideOf(rootDir);
      expect(written.output).toContain(aside);
      const after = await snapshot(rootDir);
      const kept = await snapshot(aside);
      for (const [path, bytes] of Object.entries(before)) {
        if (after[path] !== bytes && path !== '.mmmq.lock') expect(kept[path] === bytes).toBe(true);
      }
      expect(await mmmq(['repair', rootDir])).toMatchObject({ code: 0, output: 'Nothing is to be repaired.\n' });
      const { texts, warnings } = await started(rootDir);
      expect(texts).toEqual(repaired);
      expect(warnings).toEqual([]);
    },
  );

  it('finds nothing to do where all is well, with --write too', async () => {
    const rootDir = join(await newDirectory(), 'data');
    await cp(join(import.meta.dirname, '../../test/golden/mmmq/data'), rootDir, { recursive: true });
    await mkdir(join(rootDir, 'no.topic'));
    await writeFile(join(rootDir, 'no.topic', 'checkpoints'), 'mine');
    const before = await snapshot(rootDir);
    expect(await mmmq(['repair', rootDir, '--write'])).toEqual({ code: 0, output: 'Nothing is to be repaired.\n', notes: '' });
    expect(await snapshot(rootDir)).toEqual(before);
    expect(await asideOf(rootDir)).toEqual([]);
  });

  it('keeps what a start would cut: a whole message that has no position yet gets one, and only the torn rest goes', async () => {
    const rootDir = await dataDirectory();
    const whole = (await readFile(join(rootDir, mmm(LAST)))).subarray(0, ENTRY);
    await append(join(rootDir, mmm(LAST)), Buffer.concat([whole, whole.subarray(0, 12)]));
    expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({ code: 0 });
    expect((await started(rootDir)).texts).toEqual([...MESSAGES, MESSAGES[3]]);
  });

  const NO_POSITION = Buffer.alloc(8, 0xff);
  it.each<[what: string, damage: (rootDir: string) => Promise<void>, says: readonly string[]]>([
    ['no position behind those of an older segment', (dir) => append(join(dir, idx(OLDER)), NO_POSITION), []],
    ['no position behind those of the last segment', (dir) => append(join(dir, idx(LAST)), NO_POSITION), []],
    ['a position behind the end of an older segment', (dir) => append(join(dir, idx(OLDER)), int64(3 * ENTRY)), []],
    ['the position of a message that is there, again', (dir) => append(join(dir, idx(LAST)), int64(0, ENTRY)), []],
    [
      'eight zeros as the index of a segment that is not there',
      (dir) => writeFile(join(dir, TOPIC, `${'5'.padStart(19, '0')}.idx`), Buffer.alloc(8)),
      ['may be lost: offset 5'],
    ],
    [
      'positions of a segment that is not there',
      (dir) => writeFile(join(dir, TOPIC, `${'5'.padStart(19, '0')}.idx`), int64(0, ENTRY)),
      ['lost: offsets 5 to 6'],
    ],
    ['positions that lead on from the last message', (dir) => append(join(dir, idx(LAST)), int64(34, 51)), ['lost: offsets 5 to 6']],
    [
      'positions that lead on, and then one that does not',
      (dir) => append(join(dir, idx(LAST)), Buffer.concat([int64(34), NO_POSITION, int64(68), NO_POSITION])),
      ['lost: offset 5', 'may be lost: offsets 6 to 7'],
    ],
    [
      'positions that lead on, and then one behind more than a message can have',
      (dir) => append(join(dir, idx(LAST)), int64(34, 35 + PASS_MAX_BYTES)),
      ['lost: offset 5', 'may be lost: offset 6'],
    ],
    [
      'no position over bytes that are no whole message',
      async (dir) => {
        await append(join(dir, idx(LAST)), NO_POSITION);
        await append(join(dir, mmm(LAST)), Buffer.from('what was it'));
      },
      ['may be lost: offset 5'],
    ],
  ])('announces a loss only where the index proves one, or may: %s', async (_what, damage, says) => {
    const rootDir = await dataDirectory();
    await damage(rootDir);
    const { code, output } = await mmmq(['repair', rootDir]);
    expect(code).toBe(1);
    expect([...output.matchAll(/^ {2}(.*lost: .*?) of order\.created: /gm)].map(([, loss]) => loss)).toEqual(says);
    expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({ code: 0 });
    expect((await started(rootDir)).texts).toEqual(MESSAGES);
  });

  it('leaves to the operator what is in the place of a checkpoint, with the command, and mends the rest', async () => {
    const rootDir = await dataDirectory();
    await mkdir(join(rootDir, checkpoint('a')));
    const path = join(rootDir, checkpoint('a'));
    const remedy = `mv ${path} ${rootDir}.${TOPIC}.checkpoints.a.checkpoint`;
    const { code, output } = await mmmq(['repair', rootDir]);
    expect(code).toBe(1);
    expect(output).toContain(`  not repaired: ${path}: it is no ordinary file and is in the place of the checkpoint of dispatcher a: `);
    expect(output).toContain(`\n    what remains to you: ${remedy}\n  nothing of ${join(rootDir, TOPIC)} is changed\n`);

    await append(join(rootDir, mmm(OLDER)), Buffer.from('tail'));
    const written = await mmmq(['repair', rootDir, '--write']);
    expect(written).toMatchObject({ code: 1, output: expect.stringContaining(`what remains to you: ${remedy}\nDone.`) });
    execFileSync('sh', ['-c', remedy]);
    expect(await mmmq(['verify', rootDir])).toMatchObject({ code: 0 });
    expect((await started(rootDir)).texts).toEqual(MESSAGES);
  });

  it('says that nothing was changed where the copies find no room, and removes them', async () => {
    const rootDir = await dataDirectory();
    await append(join(rootDir, mmm(OLDER)), Buffer.from('tail'));
    await writeFile(join(rootDir, checkpoint('order-dispatcher')), int64(9));
    const before = await snapshot(rootDir);
    const fileSystem = new FaultyFileSystem();
    fileSystem.fail({ operation: 'write', path: /\.repair-.*\.checkpoint$/, errno: 'ENOSPC', bytesWritten: 3 });
    const { code, output, notes } = await mmmq(['repair', rootDir, '--write'], fileSystem);
    const [aside = ''] = await asideOf(rootDir);
    expect([code, output]).toEqual([2, expect.stringMatching(/ {2}will cut .*\n {2}will set .*offset 5: .*\n$/)]);
    expect(notes).toMatch(/ENOSPC; nothing in .* was changed/);
    expect(notes).toContain(`nothing but empty directories is left in ${aside}\n`);
    expect(await snapshot(rootDir)).toEqual(before);
    expect(Object.keys(await snapshot(aside))).toEqual([`${TOPIC}/`, `${TOPIC}/checkpoints/`]);
    expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({ code: 0 });
  });

  it('says where the copies are when it fails later', async () => {
    const rootDir = await dataDirectory();
    await append(join(rootDir, mmm(OLDER)), Buffer.from('tail'));
    const fileSystem = new FaultyFileSystem();
    fileSystem.fail({ operation: 'truncate', path: /\.mmm$/, errno: 'EIO' });
    const { code, notes } = await mmmq(['repair', rootDir, '--write'], fileSystem);
    const [aside = ''] = await asideOf(rootDir);
    expect([code, notes]).toEqual([2, expect.stringContaining(`run it again. What it was to change stands as it was in ${aside}\n`)]);
    expect(Object.keys(await snapshot(aside))).toContain(mmm(OLDER));
  });

  it('finds a free name for the copies where another repair of the same moment has it', async () => {
    const clock = jest.spyOn(systemClock, 'now').mockReturnValue(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
    try {
      const rootDir = await dataDirectory();
      const names: string[] = [];
      for (const ending of ['', '-2', '-3']) {
        names.push(`data.repair-20260102T030405006Z${ending}`);
        await append(join(rootDir, mmm(OLDER)), Buffer.from('tail'));
        const aside = join(dirname(rootDir), names.at(-1) ?? '');
        expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({ code: 0, output: expect.stringContaining(` ${aside}\n`) });
        expect(await asideOf(rootDir)).toEqual(names.map((name) => join(dirname(rootDir), name)));
      }
    } finally {
      clock.mockRestore();
    }
  });

  it('never cuts away a message that is whole, wherever it stands behind the damage', async () => {
    const rootDir = await dataDirectory();
    const whole = (await readFile(join(rootDir, mmm(LAST)))).subarray(0, ENTRY);
    await append(join(rootDir, mmm(LAST)), Buffer.concat([Buffer.alloc(PASS_MAX_BYTES), Buffer.from('noise'), whole]));
    const before = await snapshot(rootDir);
    const { code, output } = await mmmq(['repair', rootDir, '--write']);
    expect(code).toBe(1);
    expect(output).toMatch(/0003\.mmm, byte 34: .* a sound message stands behind it, at byte 16777255/);
    expect(output).toMatch(/truncate -s 34 /);
    expect(await snapshot(rootDir)).toEqual(before);
  });

  it('steps over a page of zeros where the index leads to the next whole message', async () => {
    const rootDir = await dataDirectory();
    await overwrite(join(rootDir, mmm(OLDER)), 0, Buffer.alloc(2 * ENTRY));
    await append(join(rootDir, idx(OLDER)), Buffer.alloc(4));
    expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({ code: 0 });
    expect((await started(rootDir)).texts).toEqual([undefined, undefined, ...MESSAGES.slice(2)]);
  });

  it('sets checkpoints: unreadable ones to 0, those beyond the end to the end', async () => {
    for (const [bytes, expected] of [
      [int64(6), 5],
      [Buffer.alloc(0), 0],
      [Buffer.alloc(7, 1), 0],
      [Buffer.alloc(20, 1), 0],
      [int64(-1), 0],
    ] as const) {
      const rootDir = await dataDirectory();
      await writeFile(join(rootDir, checkpoint('order-dispatcher')), bytes);
      expect((await mmmq(['repair', rootDir])).output).toMatch(
        new RegExp(`would set ${checkpoint('order-dispatcher')} to offset ${expected}:`),
      );
      expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({ code: 0 });
      expect((await readFile(join(rootDir, checkpoint('order-dispatcher')))).equals(int64(expected))).toBe(true);
      expect(await started(rootDir)).toMatchObject({ committed: expected, warnings: [] });
    }
  });

  it('moves a checkpoint back with the end of a topic that lost messages', async () => {
    const rootDir = await dataDirectory();
    await writeFile(join(rootDir, checkpoint('order-dispatcher')), int64(5));
    await truncate(join(rootDir, mmm(LAST)), ENTRY + 3);
    expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({ code: 0 });
    expect(await started(rootDir)).toMatchObject({ committed: 4, warnings: [] });
  });

  it('mends one topic alone when told to, and each topic as a whole or not at all', async () => {
    const rootDir = await dataDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    for (const name of ['second', 'third']) await (await engine.create(name)).append([Buffer.from('{}')]);
    await engine.close();
    for (const name of ['second', 'third']) await rm(join(rootDir, name, `${OLDER}.idx`));
    await truncate(join(rootDir, mmm(OLDER)), ENTRY);
    await append(join(rootDir, mmm(LAST)), Buffer.from('tail'));
    const before = await snapshot(rootDir);
    expect(await mmmq(['repair', rootDir, '--write', '--topic', 'second'])).toMatchObject({ code: 0 });
    const between = await snapshot(rootDir);
    expect(between).toEqual({ ...before, [`second/${OLDER}.idx`]: '0000000000000000' });
    const { code, output } = await mmmq(['repair', rootDir, '--write']);
    expect(code).toBe(1);
    expect(output).toMatch(/not repaired: the messages at offsets 1 to 2 are missing/);
    expect(await snapshot(rootDir)).toEqual({ ...between, [`third/${OLDER}.idx`]: '0000000000000000' });
    expect(await mmmq(['repair', rootDir, '--topic', 'nothing'])).toMatchObject({
      code: 2,
      notes: expect.stringContaining('there is no topic "nothing"'),
    });
  });

  it('refuses a directory that a broker has open', async () => {
    const rootDir = await dataDirectory();
    await rm(join(rootDir, TOPIC, 'checkpoints'), { recursive: true });
    const { engine } = fileEngine(rootDir);
    await engine.open();
    await appendFile(join(rootDir, mmm(LAST)), 'tail');
    const before = await snapshot(rootDir);
    expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({
      code: 2,
      output: '',
      notes: expect.stringContaining('stop it first'),
    });
    expect(await snapshot(rootDir)).toEqual(before);
    await engine.close();
  });

  it('copies aside and syncs before it changes anything, and the index before the segment', async () => {
    const rootDir = await dataDirectory();
    await truncate(join(rootDir, mmm(LAST)), ENTRY + 3);
    await append(join(rootDir, idx(OLDER)), Buffer.alloc(4));
    await overwrite(join(rootDir, idx(OLDER)), 8, int64(20));
    const fileSystem = new FaultyFileSystem();
    expect(await mmmq(['repair', rootDir, '--write'], fileSystem)).toMatchObject({ code: 0 });
    const [aside = ''] = await asideOf(rootDir);
    const changes = fileSystem.calls.filter((call) => /^(write|truncate|sync|syncDirectory|rename|makeDirectory) /.test(call));
    expect(changes).toEqual([
      `makeDirectory ${basename(aside)}`,
      `makeDirectory ${TOPIC}`,
      `write ${OLDER}.idx`,
      `sync ${OLDER}.idx`,
      `write ${LAST}.idx`,
      `sync ${LAST}.idx`,
      `write ${LAST}.mmm`,
      `sync ${LAST}.mmm`,
      `syncDirectory ${basename(aside)}`,
      `syncDirectory ${TOPIC}`,
      `syncDirectory ${basename(dirname(rootDir))}`,
      // What an interrupted repair may have renamed.
      `syncDirectory ${TOPIC}`,
      `truncate ${OLDER}.idx.repair`,
      `write ${OLDER}.idx.repair`,
      `sync ${OLDER}.mmm`,
      `sync ${OLDER}.idx.repair`,
      `rename ${OLDER}.idx.repair`,
      `syncDirectory ${TOPIC}`,
      `truncate ${LAST}.idx`,
      `sync ${LAST}.idx`,
      `truncate ${LAST}.mmm`,
      `sync ${LAST}.mmm`,
    ]);
  });

  it('can be run again after it failed at any call, with the same result', async () => {
    const damaged = async (): Promise<string> => {
      const rootDir = await dataDirectory();
      await truncate(join(rootDir, mmm(LAST)), ENTRY + 3);
      await overwrite(join(rootDir, idx(OLDER)), 8, int64(20));
      await append(join(rootDir, idx(OLDER)), Buffer.alloc(4));
      await writeFile(join(rootDir, checkpoint('order-dispatcher')), int64(9));
      return rootDir;
    };
    const expected = await damaged();
    await mmmq(['repair', expected, '--write']);
    const result = await snapshot(expected);
    let failures = 0;
    for (const operation of ['open', 'write', 'truncate', 'sync', 'syncDirectory', 'rename', 'makeDirectory'] satisfies Operation[]) {
      for (let nth = 1; ; nth += 1) {
        const rootDir = await damaged();
        const fileSystem = new FailsOnce(operation, nth);
        const { code } = await mmmq(['repair', rootDir, '--write'], fileSystem);
        if (!fileSystem.hasFailed) break;
        failures += 1;
        // Only sizes that were asked for the sake of the progress may go unnoticed; then all is done.
        if (code === 0) expect(await snapshot(rootDir)).toEqual(result);
        else expect(code).toBe(2);
        await mmmq(['repair', rootDir, '--write']);
        expect(await snapshot(rootDir)).toEqual(result);
      }
    }
    expect(failures).toBeGreaterThan(25);
  });

  it('finishes what it left when it was interrupted before a rebuilt index got its name', async () => {
    const rootDir = await dataDirectory();
    await overwrite(join(rootDir, idx(OLDER)), 8, int64(20));
    await append(join(rootDir, idx(OLDER)), Buffer.alloc(4));
    const left = await interruptedBeforeRename(rootDir);
    const verified = await mmmq(['verify', rootDir]);
    expect(verified.code).toBe(1);
    expect(verified.output).toContain(
      `left by a repair that was interrupted: ${left}: "npx mmmq repair ${rootDir} --write" finishes it or removes it`,
    );
    expect(verified.output).not.toContain('leftover');

    const { code, output } = await mmmq(['repair', rootDir, '--write']);
    expect([code, output.includes('remove ')]).toEqual([0, false]);
    expect(Object.keys(await snapshot(rootDir))).not.toContain(left);
    expect(await started(rootDir)).toMatchObject({ texts: MESSAGES, warnings: [] });
  });

  it('removes what it left when it was interrupted where the index needs no rebuilding any more; a start leaves that alone', async () => {
    const rootDir = await dataDirectory();
    const sound = await readFile(join(rootDir, idx(OLDER)));
    await append(join(rootDir, idx(OLDER)), Buffer.alloc(4));
    await overwrite(join(rootDir, idx(OLDER)), 8, int64(20));
    const left = await interruptedBeforeRename(rootDir);
    await writeFile(join(rootDir, idx(OLDER)), sound);
    const { engine, log } = fileEngine(rootDir);
    await engine.open();
    await engine.close();
    expect(log.filter((line) => line.startsWith('warn'))).toEqual([expect.stringContaining(`${left} is none of the broker's files`)]);

    const before = await snapshot(rootDir);
    expect(JSON.parse((await mmmq(['verify', rootDir, '--json'])).output)).toMatchObject({
      topics: [{ unfinishedRepairs: [join(rootDir, left)], leftovers: [], refusals: [] }],
    });
    expect((await mmmq(['repair', rootDir])).output).toContain(`  would remove ${left}: a repair that was interrupted left it\n`);
    expect(await mmmq(['repair', rootDir, '--write'])).toMatchObject({ code: 0 });
    const { [left]: _, ...others } = before;
    expect(await snapshot(rootDir)).toEqual(others);
    expect(await mmmq(['verify', rootDir])).toMatchObject({ code: 0 });
  });
});

/** Runs a repair that ends between the last byte of a rebuilt index and its rename. @returns what it leaves */
async function interruptedBeforeRename(rootDir: string): Promise<string> {
  const fileSystem = new FaultyFileSystem();
  fileSystem.fail({ operation: 'rename', path: /./, errno: 'EIO' });
  expect(await mmmq(['repair', rootDir, '--write'], fileSystem)).toMatchObject({ code: 2 });
  const left = `${idx(OLDER)}.repair`;
  expect(Object.keys(await snapshot(rootDir))).toContain(left);
  return left;
}

/** The disk fails once, at the n-th call of the operation. */
class FailsOnce extends FaultyFileSystem {
  hasFailed = false;

  constructor(operation: Operation, nth: number) {
    super();
    let callsLeft = nth;
    const push = this.calls.push.bind(this.calls);
    this.calls.push = (...calls: string[]): number => {
      callsLeft -= calls.filter((call) => call.startsWith(`${operation} `)).length;
      if (callsLeft === 0 && !this.hasFailed) {
        this.hasFailed = true;
        this.fail({ operation, path: /./, errno: 'EIO', times: 1 });
      }
      return push(...calls);
    };
  }
}
