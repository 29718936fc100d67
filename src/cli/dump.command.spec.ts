import { rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ENTRY, LAST, makeDataDirectory, MESSAGES, mmm, OLDER, overwrite, TOPIC } from '../../test/support/damaged-directory.js';
import { fileEngine } from '../../test/support/file-engine.js';
import { mmmq } from '../../test/support/recording-terminal.js';
import { snapshot, temporaryDirectories } from '../../test/support/temporary-directory.js';

const newDirectory = temporaryDirectories();
const line = (offset: number): string => `{"offset":${offset},"message":${MESSAGES[offset] ?? ''}}\n`;

async function dataDirectory(): Promise<string> {
  const rootDir = await newDirectory();
  await makeDataDirectory(rootDir);
  return rootDir;
}

describe('dump', () => {
  it('prints the stored bytes of every message, one per line, and changes nothing', async () => {
    const rootDir = await dataDirectory();
    const before = await snapshot(rootDir);
    expect(await mmmq(['dump', rootDir, TOPIC])).toEqual({ code: 0, output: [0, 1, 2, 3, 4].map(line).join(''), notes: '' });
    expect(await snapshot(rootDir)).toEqual(before);
  });

  it.each([
    [
      ['--from', '2'],
      [2, 3, 4],
    ],
    [['--to', '0'], [0]],
    [
      ['--from', '1', '--to', '3'],
      [1, 2, 3],
    ],
    [['--from', '4', '--to', '4'], [4]],
    [['--from', '5'], []],
    [['--from', '3', '--to', '2'], []],
  ])('prints with %j the offsets %j', async (options, offsets) => {
    expect((await mmmq(['dump', await dataDirectory(), TOPIC, ...options])).output).toBe(offsets.map(line).join(''));
  });

  it('prints why a message is corrupt in its place, and judges the one it begins with by the one in front', async () => {
    const rootDir = await dataDirectory();
    await overwrite(join(rootDir, mmm(OLDER)), ENTRY + 10, Buffer.from('#'));
    await overwrite(join(rootDir, mmm(LAST)), 0, Buffer.from([0, 0, 0, 99]));
    const bad = '{"offset":1,"corrupt":"its checksum does not fit"}\n';
    const { code, output } = await mmmq(['dump', rootDir, TOPIC]);
    expect(code).toBe(0);
    expect(output).toBe([line(0), bad, line(2), '{"offset":3,"corrupt":"its length cannot be right"}\n', line(4)].join(''));
    expect((await mmmq(['dump', rootDir, TOPIC, '--from', '1', '--to', '1'])).output).toBe(bad);
  });

  it('keeps a message on its line: a line break between values is printed as a space', async () => {
    const rootDir = await newDirectory();
    const { engine } = fileEngine(rootDir);
    await engine.open();
    const payloads = ['{"a":\n[1.0,\r\n2]}', 'no JSON', '{"a":"\\n"}'];
    await (await engine.create(TOPIC)).append(payloads.map((payload) => Buffer.from(payload)));
    await engine.close();
    expect((await mmmq(['dump', rootDir, TOPIC])).output).toBe(
      '{"offset":0,"message":{"a": [1.0,  2]}}\n{"offset":1,"corrupt":"it is no JSON object"}\n{"offset":2,"message":{"a":"\\n"}}\n',
    );
  });

  it('prints what can be read of a topic that a start refuses, and says so beside it', async () => {
    const rootDir = await dataDirectory();
    await truncate(join(rootDir, mmm(LAST)), 2 * ENTRY - 1);
    const torn = await mmmq(['dump', rootDir, TOPIC]);
    expect(torn.notes).toMatch(/a start is refused .*acknowledged bytes are missing\): what can be read follows/);
    expect(torn.output).toBe([0, 1, 2, 3].map(line).join('') + '{"offset":4,"corrupt":"its length cannot be right"}\n');
    await rm(join(rootDir, mmm(OLDER)));
    const half = await mmmq(['dump', rootDir, TOPIC, '--to', '3']);
    expect(half).toMatchObject({ code: 0, output: line(3), notes: expect.stringContaining('offset 0 is missing') });
  });

  it('ends with 2 for a topic that is not there, an offset that is none, and a directory that a broker has open', async () => {
    const rootDir = await dataDirectory();
    for (const words of [['../elsewhere'], ['nothing'], [TOPIC, '--from', '-1'], [TOPIC, '--to', '1.5'], []]) {
      expect(await mmmq(['dump', rootDir, ...words])).toMatchObject({ code: 2, output: '', notes: expect.stringMatching(/./) });
    }
    const { engine } = fileEngine(rootDir);
    await engine.open();
    expect(await mmmq(['dump', rootDir, TOPIC])).toMatchObject({ code: 2, notes: expect.stringContaining('stop it first') });
    await engine.close();
  });
});
