import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FaultyFileSystem } from '../../../test/support/faulty-file-system.js';
import { fileEngine } from '../../../test/support/file-engine.js';
import { temporaryDirectories } from '../../../test/support/temporary-directory.js';

const newDirectory = temporaryDirectories();

const texts = (...values: string[]): Buffer[] => values.map((value) => Buffer.from(value));

describe('a checkpoint', () => {
  async function topicOf(count: number, fileSystem = new FaultyFileSystem()) {
    const rootDir = await newDirectory();
    const { engine, log } = fileEngine(rootDir, { fileSystem });
    await engine.open();
    const topic = await engine.create('order.created');
    await topic.append(Array.from({ length: count }, (_, index) => Buffer.from(`m${index}`)));
    const file = (name: string): string => join(rootDir, 'order.created/checkpoints', `${name}.checkpoint`);
    return { rootDir, engine, topic, log, file, fileSystem };
  }

  const asOffset = async (path: string): Promise<bigint> => (await readFile(path)).readBigInt64BE(0);

  it('stands for each dispatcher on its own: 0, 3 and 5 of the same topic', async () => {
    const { rootDir, engine, topic, file } = await topicOf(6);
    for (const [name, offset] of [
      ['audit-dispatcher', 0],
      ['analytics-dispatcher', 3],
      ['billing-dispatcher', 5],
    ] as const) {
      expect(await topic.committed(name)).toBe(0);
      for (let next = 1; next <= offset; next += 1) await topic.commit(name, next);
      expect(await asOffset(file(name))).toBe(BigInt(offset));
    }
    await engine.close();
    const again = fileEngine(rootDir);
    const [reopened] = await again.engine.open();
    expect(await reopened?.committed('audit-dispatcher')).toBe(0);
    expect(await reopened?.committed('analytics-dispatcher')).toBe(3);
    expect(await reopened?.committed('billing-dispatcher')).toBe(5);
    await again.engine.close();
  });

  it('is eight bytes, overwritten in place and synced at each commit', async () => {
    const { engine, topic, file, fileSystem } = await topicOf(3);
    await topic.committed('d');
    fileSystem.calls.length = 0;
    await topic.commit('d', 1);
    await topic.commit('d', 2);
    expect(fileSystem.calls.filter((call) => !call.startsWith('open'))).toEqual(
      Array.from({ length: 2 }, () => ['write d.checkpoint', 'sync d.checkpoint']).flat(),
    );
    expect(await readFile(file('d'))).toHaveLength(8);
    await engine.close();
  });

  it.each([
    ['empty', Buffer.alloc(0)],
    ['short', Buffer.alloc(5)],
    ['long', Buffer.concat([Buffer.alloc(7), Buffer.from([2]), Buffer.alloc(4)])],
    ['negative', Buffer.from('ffffffffffffffff', 'hex')],
  ])('that is %s begins again at 0, with a warning, and is whole afterwards', async (name, bytes) => {
    const { rootDir, engine, topic, file } = await topicOf(3);
    await topic.committed('d');
    await engine.close();
    await writeFile(file('d'), bytes);
    const again = fileEngine(rootDir);
    const [reopened] = await again.engine.open();
    expect(await reopened?.committed('d')).toBe(0);
    expect(again.log.join('\n')).toMatch(/d\.checkpoint does not hold an offset of 8 bytes/);
    expect(await readFile(file('d'))).toEqual(Buffer.alloc(8));
    await reopened?.commit('d', 2);
    await again.engine.close();
    const third = fileEngine(rootDir);
    const [last] = await third.engine.open();
    expect([name, await last?.committed('d')]).toEqual([name, 2]);
    await third.engine.close();
  });

  it('is emptied before it is put at 0, so that no part of that is an offset', async () => {
    const { rootDir, engine, topic, file } = await topicOf(3);
    await topic.committed('d');
    await engine.close();
    await writeFile(file('d'), Buffer.alloc(12, 1));
    const fileSystem = new FaultyFileSystem();
    const again = fileEngine(rootDir, { fileSystem });
    const [reopened] = await again.engine.open();
    fileSystem.calls.length = 0;
    await reopened?.committed('d');
    expect(fileSystem.calls.filter((call) => !/^(open|read)/.test(call))).toEqual([
      'truncate d.checkpoint',
      'sync d.checkpoint',
      'write d.checkpoint',
      'sync d.checkpoint',
    ]);
    await again.engine.close();
  });

  it('is durable by name up to the topic, where not even its directory was there', async () => {
    const { rootDir, engine } = await topicOf(1);
    await engine.close();
    await rm(join(rootDir, 'order.created/checkpoints'), { recursive: true });
    const fileSystem = new FaultyFileSystem();
    const again = fileEngine(rootDir, { fileSystem });
    const [reopened] = await again.engine.open();
    fileSystem.calls.length = 0;
    await reopened?.committed('d');
    expect(fileSystem.calls.filter((call) => !/^(open|read)/.test(call))).toEqual([
      'makeDirectory checkpoints',
      'write d.checkpoint',
      'sync d.checkpoint',
      'syncDirectory checkpoints',
      'syncDirectory order.created',
    ]);
    await again.engine.close();
  });

  it('that is a link is not followed', async () => {
    const { engine, topic, file } = await topicOf(1);
    const elsewhere = join(await newDirectory(), 'precious');
    await writeFile(elsewhere, 'precious bytes');
    await symlink(elsewhere, file('d'));
    await expect(topic.committed('d')).rejects.toMatchObject({ code: 'MMMQ_IO', errno: 'ELOOP' });
    expect(await readFile(elsewhere, 'utf8')).toBe('precious bytes');
    await engine.close();
  });

  it('beyond the end is set to the end and synced before anything is served, with a warning', async () => {
    const { rootDir, engine, topic, file } = await topicOf(3);
    await topic.committed('gone-for-now');
    await topic.commit('gone-for-now', 3);
    await engine.close();
    await writeFile(file('gone-for-now'), Buffer.from('0000000000000009', 'hex'));
    const again = fileEngine(rootDir);
    const [reopened] = await again.engine.open();
    expect(await asOffset(file('gone-for-now'))).toBe(3n);
    expect(again.log.join('\n')).toMatch(/it says 9, but the topic ends at 3/);
    // Messages that came while its dispatcher was away are not skipped.
    await reopened?.append(texts('a', 'b', 'c', 'd', 'e', 'f', 'g'));
    expect(await reopened?.committed('gone-for-now')).toBe(3);
    await again.engine.close();
  });

  it('that cannot be made is made when it is asked for again, and its name is durable before it is used', async () => {
    const { engine, topic, fileSystem } = await topicOf(1);
    fileSystem.fail({ operation: 'write', path: /d\.checkpoint$/, errno: 'ENOSPC', times: 1 });
    await expect(topic.committed('d')).rejects.toMatchObject({ code: 'MMMQ_DISK_FULL' });
    fileSystem.fail({ operation: 'syncDirectory', path: /checkpoints$/, errno: 'EIO', times: 1 });
    await expect(topic.committed('d')).rejects.toMatchObject({ code: 'MMMQ_IO' });
    fileSystem.calls.length = 0;
    expect(await topic.committed('d')).toBe(0);
    expect(fileSystem.calls).toContain('syncDirectory checkpoints');
    await engine.close();
  });

  it('whose commit fails keeps the old offset, and the same commit can be repeated', async () => {
    const { engine, topic, file, fileSystem } = await topicOf(2);
    await topic.committed('d');
    fileSystem.fail({ operation: 'write', path: /d\.checkpoint$/, errno: 'EIO', times: 1 });
    await expect(topic.commit('d', 1)).rejects.toMatchObject({ code: 'MMMQ_IO' });
    expect(await asOffset(file('d'))).toBe(0n);
    fileSystem.fail({ operation: 'sync', path: /d\.checkpoint$/, errno: 'EIO', times: 1 });
    await expect(topic.commit('d', 1)).rejects.toMatchObject({ code: 'MMMQ_IO' });
    fileSystem.calls.length = 0;
    await topic.commit('d', 1);
    // The bytes are written again: a sync alone would prove nothing about pages that the kernel dropped.
    expect(fileSystem.calls).toEqual(['open d.checkpoint', 'write d.checkpoint', 'sync d.checkpoint']);
    await engine.close();
  });
});
