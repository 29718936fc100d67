import { cp, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { fileEngine, readTexts } from '../support/file-engine.js';
import { snapshot, temporaryDirectories } from '../support/temporary-directory.js';

const GOLDEN = join(import.meta.dirname, 'mmmq');
const newDirectory = temporaryDirectories();

/** Topic, offset and stored payload of each message in the golden directory, as its own list says. */
async function expectedMessages(): Promise<Map<string, string[]>> {
  const topics = new Map<string, string[]>();
  for (const line of (await readFile(join(GOLDEN, 'expected.tsv'), 'utf8')).split('\n').filter(Boolean)) {
    const [topic = '', , payload = ''] = line.split('\t');
    topics.set(topic, [...(topics.get(topic) ?? []), payload]);
  }
  return topics;
}

describe('the golden data directory', () => {
  it('is read byte for byte, without a byte changed', async () => {
    const rootDir = join(await newDirectory(), 'data');
    await cp(join(GOLDEN, 'data'), rootDir, { recursive: true });
    const before = await snapshot(rootDir);
    const { engine, log } = fileEngine(rootDir, { segmentMaxBytes: 400 });
    const topics = await engine.open();
    const expected = await expectedMessages();
    expect(topics.map((topic) => topic.topic)).toEqual([...expected.keys()]);
    for (const topic of topics) expect(await readTexts(topic)).toEqual(expected.get(topic.topic));
    const committed = await Promise.all(topics.map((topic) => topic.committed('audit-dispatcher')));
    expect(committed).toEqual([2, 5]);
    await engine.close();
    expect(log.filter((line) => line.startsWith('warn'))).toEqual([]);
    const after = await snapshot(rootDir);
    delete after['.mmmq.lock'];
    expect(after).toEqual(before);
  });

  it('is written the same, byte for byte, by this version', async () => {
    const rootDir = join(await newDirectory(), 'data');
    await mkdir(rootDir);
    const { engine } = fileEngine(rootDir, { segmentMaxBytes: 400 });
    await engine.open();
    for (const [name, payloads] of await expectedMessages()) {
      const topic = await engine.create(name);
      for (const payload of payloads) await topic.append([Buffer.from(payload)]);
      const dispatchers = name === 'order.created' ? ['audit-dispatcher', 'order-dispatcher'] : ['audit-dispatcher'];
      for (const dispatcher of dispatchers) {
        await topic.committed(dispatcher);
        await topic.commit(dispatcher, name === 'order.created' ? 5 : 2);
      }
    }
    await engine.close();
    const written = await snapshot(rootDir);
    delete written['.mmmq.lock'];
    expect(written).toEqual(await snapshot(join(GOLDEN, 'data')));
  });
});
