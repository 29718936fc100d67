import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import type { TopicLog } from '../../src/core/index.js';
import { FileError, NodeFileSystem, type File, type FileSystem, type OpenMode } from '../../src/storage/file-system/index.js';
import { fileEngine, readTexts } from '../support/file-engine.js';

async function inTemporaryDirectory(work: (dir: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'mmmq-test-'));
  try {
    await work(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** The real disk, until the process dies: from the `lastCall`-th changing call on nothing happens any more, and that call, when it is a write, is torn. */
class MortalFileSystem extends NodeFileSystem implements FileSystem {
  calls = 0;

  constructor(
    private readonly lastCall: number,
    private readonly tornPart: number,
  ) {
    super();
  }

  override async open(path: string, mode: OpenMode): Promise<File> {
    this.die('open', path);
    const file = await super.open(path, mode);
    const change =
      <A extends unknown[], R>(operation: string, act: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        this.die(operation, path);
        return act(...args);
      };
    return {
      path,
      size: () => file.size(),
      read: (buffer, position) => file.read(buffer, position),
      write: async (buffer, position) => {
        if (this.calls + 1 === this.lastCall) await file.write(buffer.subarray(0, Math.floor(buffer.length * this.tornPart)), position);
        this.die('write', path);
        return file.write(buffer, position);
      },
      truncate: change('truncate', (size: number) => file.truncate(size)),
      sync: change('sync', () => file.sync()),
      tryLock: () => file.tryLock(),
      isAtItsPath: () => file.isAtItsPath(),
      close: () => file.close(),
    };
  }

  override async makeDirectory(path: string): Promise<boolean> {
    this.die('make directory', path);
    return super.makeDirectory(path);
  }

  override async syncDirectory(path: string): Promise<void> {
    this.die('sync directory', path);
    return super.syncDirectory(path);
  }

  private die(operation: string, path: string): void {
    this.calls += 1;
    if (this.calls >= this.lastCall) throw new FileError(operation, path, 'the process is dead');
  }
}

const payload = fc.string({ minLength: 1, maxLength: 60, unit: 'grapheme' });
const batches = fc.array(fc.array(payload, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 12 });
const TOPICS = ['a', 'b.c'];

describe('the file engine', () => {
  it('holds what a plain list would, through any rotation, any reading and any restart', async () => {
    await fc.assert(
      fc.asyncProperty(
        batches,
        fc.integer({ min: 1, max: 400 }),
        fc.record({ maxCount: fc.integer({ min: 1, max: 9 }), maxBytes: fc.integer({ min: 1, max: 200 }) }),
        fc.array(fc.nat({ max: 11 }), { maxLength: 3 }),
        (all, segmentMaxBytes, limits, restarts) =>
          inTemporaryDirectory(async (dir) => {
            const model: string[] = [];
            let { engine } = fileEngine(dir, { segmentMaxBytes });
            await engine.open();
            let topic: TopicLog = await engine.create('t');
            for (const [index, batch] of all.entries()) {
              const outcome = await topic.append(batch.map((text) => Buffer.from(text)));
              expect(outcome).toEqual({ offsets: batch.map((_, at) => model.length + at) });
              model.push(...batch);
              if (!restarts.includes(index)) continue;
              await engine.close();
              ({ engine } = fileEngine(dir, { segmentMaxBytes }));
              topic = (await engine.open())[0] as TopicLog;
            }
            expect(topic.count).toBe(model.length);
            for (let from = 0; from < model.length; from += 3) {
              const entries = await topic.read(from, limits);
              expect(entries.length).toBeGreaterThan(0);
              expect(entries.length).toBeLessThanOrEqual(limits.maxCount);
              expect(entries.map((entry) => entry.payload?.toString())).toEqual(model.slice(from, from + entries.length));
            }
            expect(await readTexts(topic)).toEqual(model);
            await engine.close();
          }),
      ),
      { numRuns: 60 },
    );
  });

  it('has, after a death at any call, every acknowledged message, in order and without a gap, and nothing that was not sent', async () => {
    await fc.assert(
      fc.asyncProperty(
        batches,
        fc.integer({ min: 1, max: 150 }),
        fc.integer({ min: 1, max: 120 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: 1, max: 40 }),
        (all, segmentMaxBytes, lastCall, tornPart, recoveryLastCall) =>
          inTemporaryDirectory(async (dir) => {
            const sent = new Map<string, string[]>(TOPICS.map((name) => [name, []]));
            const acknowledged = new Map<string, number>(TOPICS.map((name) => [name, 0]));
            const mortal = fileEngine(dir, { segmentMaxBytes, fileSystem: new MortalFileSystem(lastCall, tornPart) });
            try {
              await mortal.engine.open();
              const topics = await Promise.all(TOPICS.map((name) => mortal.engine.create(name)));
              for (const [index, batch] of all.entries()) {
                const topic = topics[index % topics.length] as TopicLog;
                sent.get(topic.topic)?.push(...batch);
                const { offsets, failure } = await topic.append(batch.map((text) => Buffer.from(text)));
                acknowledged.set(topic.topic, (acknowledged.get(topic.topic) ?? 0) + offsets.length);
                if (failure !== undefined) break;
              }
            } catch {
              // It died before it could serve.
            }
            // What dies lets go of its lock and its handles.
            await mortal.engine.close();

            // The recovery itself dies once too, and then one lives.
            const second = fileEngine(dir, { segmentMaxBytes, fileSystem: new MortalFileSystem(recoveryLastCall, tornPart) });
            await second.engine.open().catch(() => undefined);
            await second.engine.close();

            const { engine } = fileEngine(dir, { segmentMaxBytes });
            const found = await engine.open();
            for (const name of TOPICS) {
              const topic = found.find((candidate) => candidate.topic === name);
              const texts = topic === undefined ? [] : await readTexts(topic);
              expect(texts.length).toBeGreaterThanOrEqual(acknowledged.get(name) ?? 0);
              expect(texts).toEqual(sent.get(name)?.slice(0, texts.length));
              const next = topic ?? (await engine.create(name));
              expect(await next.append([Buffer.from('used on')])).toEqual({ offsets: [texts.length] });
            }
            await engine.close();
          }),
      ),
      { numRuns: 300 },
    );
  }, 120_000);
});
