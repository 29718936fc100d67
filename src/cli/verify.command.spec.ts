import { execFileSync } from 'node:child_process';
import { appendFile, cp, mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
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
import { FaultyFileSystem } from '../../test/support/faulty-file-system.js';
import { fileEngine } from '../../test/support/file-engine.js';
import { mmmq } from '../../test/support/recording-terminal.js';
import { snapshot, temporaryDirectories } from '../../test/support/temporary-directory.js';
import { ENTRY_HEADER_BYTES } from '../core/index.js';
import type { File, OpenMode } from '../storage/index.js';
import type { TopicReport, VerificationReport } from './verification.js';

const newDirectory = temporaryDirectories();
const GOLDEN = join(import.meta.dirname, '../../test/golden/mmmq/data');

async function dataDirectory(): Promise<string> {
  const rootDir = join(await newDirectory(), 'data');
  await makeDataDirectory(rootDir);
  return rootDir;
}

/** What verify says as JSON about the one topic, and that it changed nothing. */
async function verified(rootDir: string, ...options: string[]): Promise<{ code: number; report: VerificationReport; topic: TopicReport }> {
  const before = await snapshot(rootDir);
  const { code, output } = await mmmq(['verify', rootDir, '--json', ...options]);
  expect(await snapshot(rootDir)).toEqual(before);
  const report = JSON.parse(output) as VerificationReport;
  const [topic] = report.topics;
  if (topic === undefined) throw new Error('no topic');
  return { code, report, topic };
}

describe('verify', () => {
  it('finds the golden directory clean, counts all that is in it, and leaves no lock file behind', async () => {
    const rootDir = join(await newDirectory(), 'data');
    await cp(GOLDEN, rootDir, { recursive: true });
    const { code, report } = await verified(rootDir);
    expect(code).toBe(0);
    expect(report).toMatchObject({ rootDir, live: false, obstacles: [], leftovers: [] });
    expect(report.topics.map(({ topic, segments, corruptMessages }) => [topic, segments, corruptMessages])).toEqual([
      ['notification.sent', 1, 0],
      ['order.created', 2, 0],
    ]);
    expect((await mmmq(['verify', rootDir])).output).toMatch(/order\.created: 2 segments, \d+ messages, \d+ bytes\n[^]*Clean\.\n$/);
  });

  it('reports segments, messages, bytes and checkpoints', async () => {
    const { code, topic } = await verified(await dataDirectory());
    expect(code).toBe(0);
    expect(topic).toEqual({
      topic: TOPIC,
      segments: 2,
      messages: 5,
      bytes: 5 * ENTRY,
      corruptMessages: 0,
      corrupt: [],
      refusals: [],
      remnants: [],
      checkpoints: [{ dispatcher: 'order-dispatcher', offset: 0 }],
      obstacles: [],
      unfinishedRepairs: [],
      leftovers: [],
    });
  });

  it.each(DAMAGES)('finds $found', async ({ make, says }) => {
    const rootDir = await dataDirectory();
    await make(rootDir);
    const { code, topic } = await verified(rootDir);
    expect(code).toBe(1);
    expect(topic.refusals.map(({ file, position, reason }) => `${file}, byte ${position}: ${reason}`).join('\n')).toMatch(says);
    const { output } = await mmmq(['verify', rootDir]);
    expect(output).toMatch(says);
    expect(output).toContain(`"npx mmmq repair ${rootDir}"`);
  });

  it('finds every corrupt entry, with offset, file, position and reason, wherever it stands', async () => {
    const rootDir = await dataDirectory();
    await overwrite(join(rootDir, mmm(OLDER)), ENTRY + 10, Buffer.from('#'));
    await overwrite(join(rootDir, mmm(LAST)), 0, Buffer.from([0, 0, 0, 99]));
    const { code, topic } = await verified(rootDir);
    expect(code).toBe(1);
    expect(topic).toMatchObject({ messages: 5, corruptMessages: 2, refusals: [] });
    expect(topic.corrupt).toEqual([
      { offset: 1, file: join(rootDir, mmm(OLDER)), position: ENTRY, reason: 'its checksum does not fit' },
      { offset: 3, file: join(rootDir, mmm(LAST)), position: 0, reason: 'its length cannot be right' },
    ]);
  });

  it('judges every message as the broker does when it delivers it', async () => {
    const rootDir = await dataDirectory();
    await overwrite(join(rootDir, idx(OLDER)), 8, int64(0));
    await overwrite(join(rootDir, mmm(LAST)), ENTRY + 9, Buffer.from('##'));
    const { engine } = fileEngine(rootDir);
    const [served] = await engine.open();
    const corrupt: number[] = [];
    for (let offset = 0; offset < 5; offset += 1) {
      const [entry] = (await served?.read(offset, { maxCount: 1, maxBytes: 100 })) ?? [];
      if (entry?.corruption !== undefined) corrupt.push(offset);
    }
    await engine.close();
    expect(corrupt).toEqual([1, 4]);
    expect((await verified(rootDir)).topic.corrupt.map(({ offset }) => offset)).toEqual(corrupt);
  });

  it('calls no message corrupt for what follows it, where a start refuses because of that', async () => {
    const rootDir = await dataDirectory();
    await append(join(rootDir, mmm(OLDER)), Buffer.from('tail'));
    const { topic } = await verified(rootDir);
    expect(topic).toMatchObject({ messages: 5, corruptMessages: 0, refusals: [{ file: join(rootDir, mmm(OLDER)) }] });
    expect((await mmmq(['dump', rootDir, TOPIC])).output).not.toContain('corrupt');
  });

  it('finds checkpoints that are unreadable or beyond the end', async () => {
    const rootDir = await dataDirectory();
    await writeFile(join(rootDir, checkpoint('a')), int64(6));
    await writeFile(join(rootDir, checkpoint('b')), int64(5));
    await writeFile(join(rootDir, checkpoint('c')), '');
    const { code, topic } = await verified(rootDir);
    expect(code).toBe(1);
    expect(topic.checkpoints).toEqual([
      { dispatcher: 'a', offset: 6, problem: 'beyond the end' },
      { dispatcher: 'b', offset: 5 },
      { dispatcher: 'c', problem: 'unreadable' },
      { dispatcher: 'order-dispatcher', offset: 0 },
    ]);
  });

  it('tells what the next start mends by itself from what refuses it', async () => {
    const rootDir = await dataDirectory();
    await append(join(rootDir, mmm(LAST)), Buffer.from('half an ent'));
    await append(join(rootDir, idx(LAST)), Buffer.alloc(12));
    const { code, topic } = await verified(rootDir);
    expect(code).toBe(1);
    expect(topic).toMatchObject({ messages: 5, corruptMessages: 0, refusals: [] });
    expect(topic.remnants.map(({ file }) => file)).toEqual([join(rootDir, idx(LAST)), join(rootDir, mmm(LAST))]);
    expect((await mmmq(['verify', rootDir])).output).toMatch(/a start succeeds all the same/);
  });

  it('lists what is none of the broker’s, and follows no link', async () => {
    const rootDir = await dataDirectory();
    await writeFile(join(rootDir, 'a file'), 'mine');
    await writeFile(join(rootDir, TOPIC, 'notes.txt'), 'mine');
    await writeFile(join(rootDir, TOPIC, 'checkpoints', 'notes.txt'), 'mine');
    await mkdir(join(rootDir, 'empty'));
    await mkdir(join(rootDir, 'lost+found'));
    await mkdir(join(rootDir, 'photos'));
    await writeFile(join(rootDir, 'photos', 'cat.jpg'), 'cat');
    await symlink(join(rootDir, TOPIC), join(rootDir, 'a.link'));
    const { code, report, topic } = await verified(rootDir);
    expect(code).toBe(1);
    expect(report.topics.length).toBe(1);
    expect(report.leftovers).toEqual(['a file', 'a.link', 'photos/cat.jpg'].map((name) => join(rootDir, name)));
    expect(topic.leftovers).toEqual(
      ['checkpoints/notes.txt', 'notes.txt']
        .map((name) => join(rootDir, TOPIC, name))
        .sort()
        .toReversed(),
    );
  });

  it.each<[what: string, put: (path: string) => unknown]>([
    ['a directory', (path) => mkdir(path)],
    ['a link', (path) => symlink(import.meta.filename, path)],
    ['a pipe', (path) => execFileSync('mkfifo', [path])],
  ])(
    'names %s in the place of a checkpoint, which stops the deliveries of its dispatcher, and the way to remove it',
    async (_what, put) => {
      const rootDir = await dataDirectory();
      const path = join(rootDir, checkpoint('a'));
      await put(path);
      const { code, output } = await mmmq(['verify', rootDir]);
      expect(code).toBe(1);
      expect(output).toMatch(
        new RegExp(`in the way: ${checkpoint('a')}: .* checkpoint of dispatcher a: its deliveries .* stand still until .*: mv ${path} `),
      );
      expect(output).toMatch(/a start succeeds, but deliveries stand still until what is in their way is moved\.\n$/);
      expect(output).not.toMatch(/leftover|all the same/);
      expect(JSON.parse((await mmmq(['verify', rootDir, '--json', '--live'])).output)).toMatchObject({
        topics: [
          { obstacles: [{ path, reason: expect.stringContaining('dispatcher a'), remedy: expect.stringContaining(`mv ${path} `) }] },
        ],
      });
    },
  );

  it('names what is in the place of the directory for checkpoints, which stops all deliveries of the topic', async () => {
    const rootDir = await dataDirectory();
    const path = join(rootDir, TOPIC, 'checkpoints');
    await rm(path, { recursive: true });
    await writeFile(path, '');
    const { code, topic } = await verified(rootDir);
    expect(code).toBe(1);
    expect(topic).toMatchObject({ obstacles: [{ path, reason: expect.stringContaining('for every dispatcher') }], leftovers: [] });
    expect((await mmmq(['verify', rootDir])).output).toContain(`: mv ${path} ${rootDir}.${TOPIC}.checkpoints\n`);
    // Where there is no topic, nothing is delivered.
    await mkdir(join(rootDir, 'photos'));
    await writeFile(join(rootDir, 'photos', 'checkpoints'), '');
    expect((await verified(rootDir)).report.leftovers).toEqual([join(rootDir, 'photos', 'checkpoints')]);
  });

  it.each([
    ['.mmmq.reserve', 'keeps no room'],
    ['.mmmq.synced', 'each start syncs'],
  ])('names what is in the place of %s', async (name, what) => {
    const rootDir = await dataDirectory();
    const path = join(rootDir, name);
    await writeFile(path, 'it');
    expect(await mmmq(['verify', rootDir])).toMatchObject({ code: 0 });
    await rm(path);
    await mkdir(path);
    expect((await verified(rootDir)).report.obstacles.map((obstacle) => obstacle.path)).toEqual([path]);
    const { code, output } = await mmmq(['verify', rootDir]);
    expect(code).toBe(1);
    expect(output).toMatch(
      new RegExp(`in the way: ${name}: .* ${what} .*: mv .*\\nThere are findings; a start succeeds all the same\\.\\n$`),
    );
    expect(output).toContain(`: mv ${path} ${rootDir}.${name}\n`);
  });

  it('refuses a directory that a broker has open, says who has it, and reads beside it when told to', async () => {
    const rootDir = await dataDirectory();
    const { engine } = fileEngine(rootDir);
    const [topic] = await engine.open();
    const refused = await mmmq(['verify', rootDir]);
    expect(refused).toMatchObject({ code: 2, output: '' });
    expect(refused.notes).toContain(`has the data directory ${rootDir} open (process ${process.pid}): stop it first`);
    const live = await mmmq(['verify', rootDir, '--live', '--json']);
    expect(live.code).toBe(0);
    expect(live.notes).toMatch(/without the lock.*is not judged/);
    expect(JSON.parse(live.output)).toMatchObject({ live: true, topics: [{ messages: 5 }] });
    // An append under way: entries without positions, half a record, a checkpoint without its bytes.
    await appendFile(join(rootDir, mmm(LAST)), 'half an ent');
    await appendFile(join(rootDir, idx(LAST)), Buffer.alloc(3));
    await writeFile(join(rootDir, checkpoint('new')), '');
    expect((await mmmq(['verify', rootDir, '--live'])).code).toBe(0);
    await overwrite(join(rootDir, mmm(LAST)), 10, Buffer.from('#'));
    expect((await mmmq(['verify', rootDir, '--live'])).code).toBe(1);
    expect(topic?.count).toBe(5);
    await engine.close();
  });

  it('finds nothing wrong beside a broker that appends and rotates all the time', async () => {
    const rootDir = await dataDirectory();
    const { engine } = fileEngine(rootDir, { segmentMaxBytes: 50 * ENTRY });
    const [topic] = await engine.open();
    if (topic === undefined) throw new Error('no topic');
    const over = new AbortController();
    const appending = (async () => {
      while (!over.signal.aborted) {
        await topic.append(MESSAGES.map((message) => Buffer.from(message)));
        await topic.commit('order-dispatcher', topic.count);
      }
    })();
    for (let run = 0; run < 20; run += 1) expect(await mmmq(['verify', rootDir, '--live'])).toMatchObject({ code: 0 });
    over.abort();
    await appending;
    await engine.close();
    expect(topic.count).toBeGreaterThan(5);
  });

  it('looks again beside a broker before it calls a message corrupt: an append may have been taken back while it was read', async () => {
    const rootDir = await dataDirectory();
    for (const [wrongReads, code] of [
      [1, 0],
      [2, 1],
    ] as const) {
      expect(await mmmq(['verify', rootDir, '--live'], new ChangingFileSystem(/0{18}3\.mmm$/, wrongReads))).toMatchObject({ code });
    }
    // A segment that is complete does not change: there, once is enough, behind the look that a start would have.
    expect(await mmmq(['verify', rootDir, '--live'], new ChangingFileSystem(/0{19}\.mmm$/, 2))).toMatchObject({ code: 1 });
  });

  it('ends with 2 where it cannot read, and still reports the other topics', async () => {
    const rootDir = await dataDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    await (await engine.create('second')).append([Buffer.from('{}')]);
    await engine.close();
    const fileSystem = new FaultyFileSystem();
    fileSystem.fail({ operation: 'read', path: /order\.created\/0{18}3\.mmm$/, errno: 'EIO' });
    const { code, output, notes } = await mmmq(['verify', rootDir], fileSystem);
    expect(code).toBe(2);
    expect(notes).toMatch(/topic order\.created could not be read to its end: read failed on .*0003\.mmm: EIO/);
    expect(output).toMatch(/second: 1 segment, 1 message/);
    expect(output).not.toMatch(/corrupt|refuses/);
  });

  it.each([[['verify']], [['verify', '/nowhere/at/all']], [['verify', import.meta.filename]], [['verify', '.', '--loud']], [['nonsense']]])(
    'ends with 2 and a message for %j',
    async (words) => {
      const { code, notes, output } = await mmmq(words);
      expect(code).toBe(2);
      expect(notes).not.toBe('');
      expect(output).toBe('');
    },
  );

  it('lists the first thousand corrupt entries and counts the others', async () => {
    const rootDir = await dataDirectory();
    await rm(join(rootDir, mmm(OLDER)));
    await rm(join(rootDir, idx(OLDER)));
    await truncate(join(rootDir, mmm(LAST)), 0);
    await writeFile(join(rootDir, idx(LAST)), Buffer.alloc(8 * 2500, 1));
    const { topic } = await verified(rootDir);
    expect(topic.corruptMessages).toBe(2500);
    expect(topic.corrupt.length).toBe(1000);
    expect((await mmmq(['verify', rootDir])).output).toMatch(/corrupt: 1500 more/);
  });
});

/** A disk on which the first reads of a message in a file show other bytes than the later ones. */
class ChangingFileSystem extends FaultyFileSystem {
  constructor(
    private readonly path: RegExp,
    private wrongReads: number,
  ) {
    super();
  }

  override async open(path: string, mode: OpenMode): Promise<File> {
    const file = await super.open(path, mode);
    if (!this.path.test(path)) return file;
    return {
      ...file,
      read: async (buffer, position) => {
        const length = await file.read(buffer, position);
        if (length > ENTRY_HEADER_BYTES && this.wrongReads > 0) {
          this.wrongReads -= 1;
          buffer[ENTRY_HEADER_BYTES] = 0;
        }
        return length;
      },
    };
  }
}
