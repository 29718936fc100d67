import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ErrorCode, MmmqError, PASS_MAX_BYTES, type LogEntry, type TopicLog } from '../../src/core/index.js';
import { NodeFileSystem, type DirectoryEntry, type File, type OpenMode } from '../../src/storage/file-system/index.js';
import { fileEngine, readAll } from '../support/file-engine.js';
import { DamagedDirectory } from './damage.js';
import { below, seededRandom } from './seeded-random.js';

/** `MMMQ_FUZZ_ROUNDS=20000 npm run jest -- test/crash/corruption` for more; `MMMQ_FUZZ_SEED=… MMMQ_FUZZ_ROUNDS=1` to see one again. */
const ROUNDS = Number(process.env['MMMQ_FUZZ_ROUNDS'] ?? 500);
const SEED = Number(process.env['MMMQ_FUZZ_SEED'] ?? 1);

const SEGMENT_MAX_BYTES = 700;
const DISPATCHERS = { audit: 5, billing: 11 };
/** What a start, and whatever else a round asks of the engine, may take at most: so many calls to the disk, the largest of so many bytes. */
const MAX_CALLS = 20_000;
const MAX_READ_BYTES = PASS_MAX_BYTES;
/** By how much the memory of the whole process may grow, garbage included, over all rounds. */
const MAX_GROWTH_BYTES = 256 * 1024 * 1024;
/** A file larger than this is compared by its size, its blocks and its two ends. */
const COMPARED_WHOLE_BYTES = 64 * 1024;

/** Stands for a broker that would never come to its end. No part of the engine catches it. */
class TooMuch extends Error {}

/** The real disk, with a count of the calls and a limit to what a round may ask for. */
class BoundedFileSystem extends NodeFileSystem {
  calls = 0;

  override async open(path: string, mode: OpenMode): Promise<File> {
    this.count();
    const file = await super.open(path, mode);
    const counted =
      <A extends unknown[], R>(act: (...args: A) => Promise<R>) =>
      (...args: A): Promise<R> => {
        this.count();
        return act(...args);
      };
    return {
      path,
      size: counted(() => file.size()),
      read: counted((buffer: Buffer, position: number) => {
        if (buffer.length > MAX_READ_BYTES) throw new TooMuch(`a read of ${buffer.length} bytes of ${path}`);
        return file.read(buffer, position);
      }),
      write: counted((buffer: Buffer, position: number) => file.write(buffer, position)),
      truncate: counted((size: number) => file.truncate(size)),
      sync: counted(() => file.sync()),
      tryLock: counted(() => file.tryLock()),
      isAtItsPath: counted(() => file.isAtItsPath()),
      close: () => file.close(),
    };
  }

  override list(path: string): Promise<readonly DirectoryEntry[]> {
    this.count();
    return super.list(path);
  }

  private count(): void {
    this.calls += 1;
    if (this.calls > MAX_CALLS) throw new TooMuch(`more than ${MAX_CALLS} calls to the disk`);
  }
}

/** Syncs cost nothing in memory, and thousands of rounds need no durability. */
const base = fs.mkdtempSync(join(isWritable('/dev/shm') ? '/dev/shm' : tmpdir(), 'mmmq-test-'));
const good = join(base, 'good');
const dir = join(base, 'data');
const outside = join(base, 'outside');
/** What the good directory holds. */
const stored = new Map<string, readonly string[]>();
/** Where the last segment of each topic begins. */
const lastBaseOffsets = new Map<string, number>();

beforeAll(async () => {
  const { engine } = fileEngine(good, { segmentMaxBytes: SEGMENT_MAX_BYTES });
  await engine.open();
  // No two messages, and no two segments, are of the same size: nothing may fit into the place of another by chance.
  for (const [topic, count, step] of [
    ['order.created', 37, 7],
    ['payment.done', 29, 11],
  ] as const) {
    const payloads = Array.from({ length: count }, (_, number) =>
      Buffer.from(JSON.stringify({ topic, number, filler: 'x'.repeat((number * step) % 83) })),
    );
    const log = await engine.create(topic);
    for (let first = 0; first < count; first += 5) {
      const { failure } = await log.append(payloads.slice(first, first + 5));
      if (failure !== undefined) throw failure;
    }
    for (const [dispatcher, offset] of Object.entries(DISPATCHERS)) {
      await log.committed(dispatcher);
      await log.commit(dispatcher, offset);
    }
    stored.set(topic, payloads.map(String));
    const names = fs.readdirSync(join(good, topic)).filter((name) => name.endsWith('.mmm'));
    if (names.length < 4) throw new Error(`${topic} has only ${names.length} segments`);
    lastBaseOffsets.set(topic, Math.max(...names.map((name) => Number.parseInt(name, 10))));
  }
  await engine.close();
  // Signed by another process, so that a signature in a start that is refused shows.
  fs.writeFileSync(join(good, '.mmmq.lock'), '1\n');
});

afterAll(() => fs.rmSync(base, { recursive: true, force: true }));

function isWritable(path: string): boolean {
  try {
    fs.accessSync(path, fs.constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Everything below the directory, links as what they say. */
function everything(): Map<string, string> {
  const found = new Map<string, string>();
  for (const entry of fs.readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    found.set(path, entry.isSymbolicLink() ? `-> ${fs.readlinkSync(path)}` : entry.isFile() ? bytesOf(path) : 'directory');
  }
  return found;
}

function bytesOf(path: string): string {
  const { size, blocks } = fs.statSync(path);
  if (size <= COMPARED_WHOLE_BYTES) return fs.readFileSync(path, 'latin1');
  const ends = Buffer.alloc(COMPARED_WHOLE_BYTES);
  const fd = fs.openSync(path, 'r');
  fs.readSync(fd, ends, 0, ends.length / 2, 0);
  fs.readSync(fd, ends, ends.length / 2, ends.length / 2, size - ends.length / 2);
  fs.closeSync(fd);
  return `${size} bytes in ${blocks} blocks: ${ends.toString('latin1')}`;
}

/** What may come of a damage, topic by topic. */
class Expectation {
  constructor(private readonly damaged: DamagedDirectory) {}

  isTouched(topic: string): boolean {
    return [...this.damaged.touched].some((path) => path === topic || path.startsWith(`${topic}/`));
  }

  /** A log may end early only where its end was touched: what the offset index does not name does not exist. */
  mayBeShorter(topic: string): boolean {
    const lastBaseOffset = lastBaseOffsets.get(topic) ?? 0;
    return [...this.damaged.touched].some((path) => {
      const number = new RegExp(`^${topic}/(\\d{19})\\.(mmm|idx)$`).exec(path)?.[1];
      return path === topic || (number !== undefined && Number(number) >= lastBaseOffset);
    });
  }

  /** Why this entry of so many is wrong, or undefined when it is the one that was stored there, or says that it is damaged. */
  problem(topic: string, entry: LogEntry, count: number): string | undefined {
    if (entry.payload === undefined) return this.isTouched(topic) ? undefined : `corrupt although nothing touched it: ${entry.corruption}`;
    const text = entry.payload.toString();
    if (text === stored.get(topic)?.[entry.offset] || text === this.movedWith(topic, entry.offset)) return undefined;
    if (entry.offset === count - 1 && this.mayEndIn(topic, text)) return undefined;
    return `another message: ${text.slice(0, 100)}`;
  }

  /** The index knows where the last message begins, and nothing where it ends: any whole message that came to that place is the last one. */
  private mayEndIn(topic: string, text: string): boolean {
    const lastBaseOffset = String(lastBaseOffsets.get(topic)).padStart(19, '0');
    return this.damaged.touched.has(`${topic}/${lastBaseOffset}.mmm`) && [...stored.values()].some((payloads) => payloads.includes(text));
  }

  /** Both files of a segment put under another name cannot be told from files of that name: what they held is what is there. */
  private movedWith(topic: string, offset: number): string | undefined {
    for (let baseOffset = offset; baseOffset >= 0; baseOffset -= 1) {
      const name = join(topic, String(baseOffset).padStart(19, '0'));
      const [segment, offsetIndex] = [this.damaged.origins.get(`${name}.mmm`), this.damaged.origins.get(`${name}.idx`)];
      if (segment === undefined && offsetIndex === undefined) continue;
      if (segment?.topic !== offsetIndex?.topic || segment?.baseOffset !== offsetIndex?.baseOffset) return undefined;
      return segment === undefined ? undefined : stored.get(segment.topic)?.[segment.baseOffset + offset - baseOffset];
    }
    return undefined;
  }
}

const texts = (entries: readonly LogEntry[]): (string | undefined)[] => entries.map(({ payload }) => payload?.toString());

type Outcome = 'refused' | 'running' | 'running with corrupt entries' | 'running with a shorter log';

/** @throws {Error} when the broker did what it must not */
async function round(seed: number): Promise<Outcome> {
  const random = seededRandom(seed);
  for (const path of [dir, outside]) fs.rmSync(path, { recursive: true, force: true });
  fs.mkdirSync(outside);
  fs.cpSync(good, dir, { recursive: true });
  const damaged = new DamagedDirectory(dir, random, outside);
  const damages = 1 + below(random, random() < 0.6 ? 1 : 4);
  for (let done = 0; done < damages; done += 1) damaged.damage();
  try {
    return await startOn(damaged);
  } catch (error) {
    const command = `MMMQ_FUZZ_SEED=${seed} MMMQ_FUZZ_ROUNDS=1 npm run jest -- test/crash/corruption`;
    throw new Error([`${command}`, ...damaged.done, error instanceof Error ? error.message : String(error)].join('\n'), { cause: error });
  }
}

async function startOn(damaged: DamagedDirectory): Promise<Outcome> {
  const expectation = new Expectation(damaged);
  const before = everything();
  const open = async (): Promise<{ logs: readonly TopicLog[]; close: () => Promise<void> }> => {
    const { engine } = fileEngine(dir, { segmentMaxBytes: SEGMENT_MAX_BYTES, fileSystem: new BoundedFileSystem() });
    return { logs: await engine.open(), close: () => engine.close() };
  };

  const first = await open().catch((error: unknown) => error);
  if (!isOpen(first)) {
    checkRefusal(first, before);
    return 'refused';
  }
  const seen = new Map<string, (string | undefined)[]>();
  const checkpoints = new Map<string, number>();
  let outcome: Outcome = 'running';
  try {
    for (const topic of stored.keys()) {
      const isThere = first.logs.some((log) => log.topic === topic);
      if (!isThere && !expectation.mayBeShorter(topic)) throw new Error(`${topic} is gone`);
    }
    for (const log of first.logs) {
      const entries = await readAll(log);
      const wrong = entries.flatMap((entry, index) => {
        if (entry.offset !== index) return [`${entry.offset} came as ${index}`];
        const problem = expectation.problem(log.topic, entry, entries.length);
        return problem === undefined ? [] : [`${log.topic} ${index}: ${problem}`];
      });
      if (wrong.length > 0) throw new Error(wrong.join('\n'));
      if (entries.some(({ payload }) => payload === undefined)) outcome = 'running with corrupt entries';
      if (entries.length < (stored.get(log.topic)?.length ?? 0)) {
        if (!expectation.mayBeShorter(log.topic)) throw new Error(`${log.topic} ends at ${entries.length}`);
        outcome = 'running with a shorter log';
      }
      await checkUse(log, expectation, damaged, checkpoints);
      seen.set(log.topic, texts(await readAll(log)));
    }
  } finally {
    await first.close();
  }

  // What runs once runs again, and has what it showed and acknowledged.
  const second = await open();
  try {
    expect(second.logs.map(({ topic }) => topic)).toEqual(first.logs.map(({ topic }) => topic));
    for (const log of second.logs) {
      expect(texts(await readAll(log))).toEqual(seen.get(log.topic));
      for (const dispatcher of Object.keys(DISPATCHERS)) {
        const committed = checkpoints.get(`${log.topic} ${dispatcher}`);
        if (committed !== undefined) expect(await log.committed(dispatcher)).toBe(committed);
      }
    }
  } finally {
    await second.close();
  }
  return outcome;
}

function isOpen(opened: unknown): opened is { logs: readonly TopicLog[]; close: () => Promise<void> } {
  return typeof opened === 'object' && opened !== null && 'logs' in opened;
}

function checkRefusal(error: unknown, before: ReadonlyMap<string, string>): void {
  if (!(error instanceof MmmqError) || !(error.code === ErrorCode.CORRUPT || error.code === ErrorCode.IO)) throw error;
  if (!error.message.includes(`${dir}/`)) throw new Error(`a refusal that names no file: ${error.message}`);
  const after = everything();
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path));
  if (changed.length > 0) throw new Error(`changed by a start that was refused (${error.message}): ${changed.join(', ')}`);
}

/** Appends, and asks where the dispatchers are; what is in the way of that may be an error, and never a wrong answer. */
async function checkUse(
  log: TopicLog,
  expectation: Expectation,
  damaged: DamagedDirectory,
  checkpoints: Map<string, number>,
): Promise<void> {
  for (const [dispatcher, offset] of Object.entries(DISPATCHERS)) {
    const path = join(log.topic, 'checkpoints', `${dispatcher}.checkpoint`);
    const committed = await log.committed(dispatcher).catch((error: unknown) => {
      if (error instanceof MmmqError && damaged.touched.size > 0) return undefined;
      throw error;
    });
    if (committed === undefined) continue;
    const isTouched = [...damaged.touched].some((touched) => path === touched || path.startsWith(`${touched}/`));
    const isRight = isTouched || !stored.has(log.topic) ? Number.isSafeInteger(committed) && committed >= 0 : committed === offset;
    const atMost = Math.min(committed, log.count);
    if (committed !== atMost || !(isRight || committed === log.count))
      throw new Error(`${path} says ${committed}, the log has ${log.count}`);
    if (committed < log.count) {
      await log.commit(dispatcher, committed + 1);
      checkpoints.set(`${log.topic} ${dispatcher}`, committed + 1);
    }
  }
  const end = log.count;
  const payloads = ['{"appended":"behind the damage"}', '{"appended":"and one more"}'].map((text) => Buffer.from(text));
  const { offsets, failure } = await log.append(payloads);
  if (failure !== undefined) {
    if (!expectation.isTouched(log.topic)) throw failure;
    return;
  }
  expect(offsets).toEqual([end, end + 1]);
  expect(texts(await log.read(end, { maxCount: 2, maxBytes: 1000 }))).toEqual(payloads.map(String));
}

describe('A data directory that was damaged', () => {
  it(
    `is refused as it is or gives only what was stored, in ${ROUNDS} rounds from seed ${SEED}`,
    async () => {
      const counts = new Map<Outcome, number>();
      const failures: string[] = [];
      const memoryBytes = process.resourceUsage().maxRSS * 1024;
      for (let seed = SEED; seed < SEED + ROUNDS; seed += 1) {
        try {
          const outcome = await round(seed);
          counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
        } catch (error) {
          failures.push(error instanceof Error ? error.message : String(error));
        }
      }
      const summary = [...counts].map(([outcome, count]) => `${count} ${outcome}`).join(', ');
      const growthBytes = process.resourceUsage().maxRSS * 1024 - memoryBytes;
      console.log(
        `corruption: ${ROUNDS} rounds from seed ${SEED}: ${summary}, ${failures.length} wrong; ` +
          `memory grew by ${Math.round(growthBytes / 1024 / 1024)} MiB`,
      );
      if (failures.length > 0) {
        throw new Error(`${failures.length} rounds were wrong, the first of them:\n\n${failures.slice(0, 10).join('\n\n')}`);
      }
      expect(growthBytes).toBeLessThan(MAX_GROWTH_BYTES);
    },
    60_000 + ROUNDS * 200,
  );
});
