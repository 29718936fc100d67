import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { below, type Random } from './seeded-random.js';

/** What can be told of a file's bytes: that they are those of this segment file, offset index or checkpoint, in whatever place they stand. */
export interface Origin {
  readonly topic: string;
  readonly baseOffset: number;
}

/**
 * A data directory that is damaged on purpose, and what an observer must know of it to judge a broker that runs on it.
 *
 * The damage: one bit or several flipped; ranges of zeros, of noise, of another file's bytes; whole entries and records put in another's place;
 * files cut at any byte and at the boundaries of entries and records; ranges taken out and put in twice; tails of zeros, noise and repetition;
 * sparse growth up to 1 TiB; files removed, renamed, swapped and copied, alone and in pairs; topics swapped, renamed, copied and removed;
 * foreign files and directories; directories where files should be and the other way round; links to good files, to directories and to
 * nothing.
 */
export class DamagedDirectory {
  /** What was done, in words. */
  readonly done: string[] = [];
  /** The paths, below the directory, that are no longer as they were. */
  readonly touched = new Set<string>();
  /** Whose bytes stand under a path, for files that were moved or copied whole. */
  readonly origins = new Map<string, Origin>();

  constructor(
    readonly dir: string,
    private readonly random: Random,
    /** A directory outside, for what links point to. */
    private readonly outside: string,
  ) {
    for (const path of this.files()) {
      const origin = originOf(path);
      if (origin !== undefined) this.origins.set(path, origin);
    }
  }

  damage(): void {
    const [name, act] = pick(this.random, KINDS);
    const what = act(this, this.random);
    if (what !== undefined) this.done.push(`${name}: ${what}`);
  }

  /** Every ordinary file, by its path below the directory. */
  files(ending = /\.(mmm|idx|checkpoint)$/): string[] {
    return fs
      .readdirSync(this.dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && ending.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(this.dir.length + 1))
      .sort();
  }

  directories(): string[] {
    return fs
      .readdirSync(this.dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.dir.length + 1))
      .sort();
  }

  topics(): string[] {
    return this.directories().filter((path) => !path.includes('/'));
  }

  at(path: string): string {
    return join(this.dir, path);
  }

  read(path: string): Buffer {
    const { size } = fs.statSync(this.at(path));
    // What has been grown beyond all measure is not read back.
    return size > MAX_READ_BYTES ? Buffer.alloc(0) : fs.readFileSync(this.at(path));
  }

  write(path: string, bytes: Buffer): void {
    fs.writeFileSync(this.at(path), bytes);
    this.touched.add(path);
  }

  /** Another thing in the place of a file or a directory with all that is in it. */
  replace(path: string, make: (at: string) => void): void {
    this.forget(path);
    fs.rmSync(this.at(path), { recursive: true, force: true });
    fs.mkdirSync(dirname(this.at(path)), { recursive: true });
    make(this.at(path));
  }

  move(from: string, to: string): void {
    const moved = this.originsBelow(from);
    this.forget(to);
    fs.rmSync(this.at(to), { recursive: true, force: true });
    fs.renameSync(this.at(from), this.at(to));
    this.forget(from);
    for (const [rest, origin] of moved) this.origins.set(to + rest, origin);
  }

  /** @returns false where there is a file that was grown beyond all measure: its copy would not be sparse, and fill the disk */
  copy(from: string, to: string): boolean {
    const isSmall = (path: string): boolean => fs.lstatSync(path).size <= MAX_READ_BYTES;
    const paths = fs.statSync(this.at(from)).isDirectory() ? fs.readdirSync(this.at(from), { recursive: true, encoding: 'utf8' }) : [''];
    if (!paths.every((path) => isSmall(join(this.at(from), path)))) return false;
    const copied = this.originsBelow(from);
    this.forget(to);
    fs.rmSync(this.at(to), { recursive: true, force: true });
    fs.cpSync(this.at(from), this.at(to), { recursive: true, verbatimSymlinks: true });
    for (const [rest, origin] of copied) this.origins.set(to + rest, origin);
    return true;
  }

  swap(one: string, other: string): void {
    this.move(one, 'swapped');
    this.move(other, one);
    this.move('swapped', other);
  }

  /** A place outside the directory with what stands under the path. */
  takeOutside(path: string): string {
    const taken = join(this.outside, String(fs.readdirSync(this.outside).length));
    fs.renameSync(this.at(path), taken);
    return taken;
  }

  private originsBelow(path: string): [rest: string, origin: Origin][] {
    return [...this.origins]
      .filter(([candidate]) => candidate === path || candidate.startsWith(`${path}/`))
      .map(([candidate, origin]) => [candidate.slice(path.length), origin]);
  }

  private forget(path: string): void {
    this.touched.add(path);
    for (const [rest] of this.originsBelow(path)) {
      this.origins.delete(path + rest);
      this.touched.add(path + rest);
    }
  }
}

const MAX_READ_BYTES = 1024 * 1024;
const RECORD_BYTES = 8;

function originOf(path: string): Origin | undefined {
  const match = /^([^/]+)\/(\d{19})\.(mmm|idx)$/.exec(path);
  return match === null ? undefined : { topic: match[1] ?? '', baseOffset: Number(match[2]) };
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[below(random, from.length)] as T;
}

function noise(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => below(random, 256)));
}

/** Where the entries of a segment file begin, and where the last one ends. */
function entryBounds(bytes: Buffer): number[] {
  const found = [0];
  for (let at = 0; at + RECORD_BYTES < bytes.length;) {
    const length = bytes.readInt32BE(at);
    if (length <= 4 || at + 4 + length > bytes.length) break;
    at += 4 + length;
    found.push(at);
  }
  return found;
}

/** The boundaries of what a file is made of: entries, records, bytes. */
function bounds(path: string, bytes: Buffer): number[] {
  if (path.endsWith('.mmm')) return entryBounds(bytes);
  return Array.from({ length: Math.floor(bytes.length / RECORD_BYTES) + 1 }, (_, index) => index * RECORD_BYTES);
}

/** A part of a file: at any byte, or from boundary to boundary. */
function part(random: Random, path: string, bytes: Buffer): [begin: number, end: number] {
  const candidates = random() < 0.5 ? bounds(path, bytes) : [below(random, bytes.length + 1), below(random, bytes.length + 1)];
  const [one, other] = [pick(random, candidates), pick(random, candidates)];
  return [Math.min(one, other), Math.max(one, other)];
}

/** Does nothing, and says so, where there is nothing left to damage. */
type Act = (directory: DamagedDirectory, random: Random) => string | undefined;

/** Changes the bytes of a file. The change is told of in words. */
const content =
  (change: (bytes: Buffer, random: Random, path: string, directory: DamagedDirectory) => Buffer | undefined, ending?: RegExp): Act =>
  (directory, random) => {
    const files = directory.files(ending);
    if (files.length === 0) return undefined;
    const path = pick(random, files);
    const before = directory.read(path);
    if (before.length === 0) return undefined;
    const after = change(Buffer.from(before), random, path, directory);
    if (after === undefined || after.equals(before)) return undefined;
    directory.write(path, after);
    return `${path}, ${before.length} bytes before and ${after.length} after`;
  };

function flip(bytes: Buffer, random: Random, count: number): Buffer {
  for (let flipped = 0; flipped < count; flipped += 1) {
    const at = below(random, bytes.length);
    bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << below(random, 8)), at);
  }
  return bytes;
}

const file =
  (act: (directory: DamagedDirectory, random: Random, path: string) => string | undefined, ending?: RegExp): Act =>
  (directory, random) => {
    const files = directory.files(ending);
    return files.length === 0 ? undefined : act(directory, random, pick(random, files));
  };

const WRONG_NAMES = [
  '0000000000000000000.MMM',
  '0000000000000000000.mmm~',
  '000000000000000000.mmm',
  '00000000000000000000.idx',
  '0000000000000000001.mmm',
  '0000000000000000001.idx',
  '9999999999999999999.mmm',
  '9007199254740993000.idx',
  '-000000000000000001.idx',
  '.0000000000000000000.mmm.swp',
  'CHECKPOINTS',
  'notes.txt',
  '.hidden',
  'checkpoints/audit.checkpoint.bak',
  'checkpoints/dlq.audit.checkpoint',
  'checkpoints/.checkpoint',
  'checkpoints/new-one.checkpoint',
];

const RECORD_VALUES = [0n, 1n, 7n, 8n, -1n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n)];

/** The two files of a segment by their path without the ending. */
function pairs(directory: DamagedDirectory): string[] {
  const segments = directory.files(/\.mmm$/).map((path) => path.slice(0, -4));
  const indexes = new Set(directory.files(/\.idx$/).map((path) => path.slice(0, -4)));
  return segments.filter((path) => indexes.has(path));
}

const KINDS: readonly (readonly [name: string, act: Act])[] = [
  ['one bit flipped', content((bytes, random) => flip(bytes, random, 1))],
  ['one bit flipped', content((bytes, random) => flip(bytes, random, 1), /\.mmm$/)],
  ['one bit flipped', content((bytes, random) => flip(bytes, random, 1), /\.idx$/)],
  ['bits flipped', content((bytes, random) => flip(bytes, random, 2 + below(random, 30)))],
  [
    'a range of zeros',
    content((bytes, random, path) => {
      const [begin, end] = part(random, path, bytes);
      return bytes.fill(0, begin, end);
    }),
  ],
  [
    'a range of noise',
    content((bytes, random, path) => {
      const [begin, end] = part(random, path, bytes);
      noise(random, end - begin).copy(bytes, begin);
      return bytes;
    }),
  ],
  [
    'cut',
    content((bytes, random, path) => bytes.subarray(0, random() < 0.5 ? pick(random, bounds(path, bytes)) : below(random, bytes.length))),
  ],
  ['cut', content((bytes, random) => bytes.subarray(0, Math.max(0, bytes.length - 1 - below(random, 40))))],
  [
    'a range taken out',
    content((bytes, random, path) => {
      const [begin, end] = part(random, path, bytes);
      return Buffer.concat([bytes.subarray(0, begin), bytes.subarray(end)]);
    }),
  ],
  [
    'a range twice',
    content((bytes, random, path) => {
      const [begin, end] = part(random, path, bytes);
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(begin)]);
    }),
  ],
  [
    'a tail',
    content((bytes, random, path) => {
      const length = 1 + below(random, random() < 0.5 ? 16 : 600);
      const [begin, end] = part(random, path, bytes);
      return Buffer.concat([bytes, pick(random, [Buffer.alloc(length), noise(random, length), bytes.subarray(begin, end)])]);
    }),
  ],
  [
    "a range of another file's",
    content((bytes, random, path, directory) => {
      const other = pick(random, directory.files(path.endsWith('.mmm') ? /\.mmm$/ : /\.(idx|checkpoint)$/));
      const source = directory.read(other);
      const [begin, end] = part(random, other, source);
      const at = random() < 0.5 ? pick(random, bounds(path, bytes)) : below(random, bytes.length);
      source.copy(bytes, at, begin, Math.min(end, begin + bytes.length - at));
      return bytes;
    }),
  ],
  [
    'a record elsewhere',
    content((bytes, random) => {
      const records = Math.floor(bytes.length / RECORD_BYTES);
      if (records === 0) return undefined;
      const [one, other] = [below(random, records) * RECORD_BYTES, below(random, records) * RECORD_BYTES];
      const record = Buffer.from(bytes.subarray(one, one + RECORD_BYTES));
      if (random() < 0.5) bytes.copy(bytes, one, other, other + RECORD_BYTES);
      record.copy(bytes, other);
      return bytes;
    }, /\.idx$/),
  ],
  [
    'a record of another value',
    content((bytes, random) => {
      const records = Math.floor(bytes.length / RECORD_BYTES);
      if (records === 0) return undefined;
      const near = BigInt(below(random, 2000));
      bytes.writeBigInt64BE(random() < 0.5 ? near : pick(random, RECORD_VALUES), below(random, records) * RECORD_BYTES);
      return bytes;
    }, /\.(idx|checkpoint)$/),
  ],
  [
    'a length of another value',
    content((bytes, random) => {
      const at = pick(random, entryBounds(bytes));
      if (at + 4 > bytes.length) return undefined;
      bytes.writeInt32BE(pick(random, [0, -1, 4, 5, 3, 2 ** 31 - 1, -(2 ** 31), 16 * 1024 * 1024, below(random, 2000)]), at);
      return bytes;
    }, /\.mmm$/),
  ],
  [
    'grown',
    file((directory, random, path) => {
      const size = fs.statSync(directory.at(path)).size + 2 ** (3 + below(random, 38));
      fs.truncateSync(directory.at(path), size);
      directory.touched.add(path);
      return `${path} to ${size} bytes`;
    }),
  ],
  [
    'removed',
    file((directory, _random, path) => {
      directory.replace(path, () => undefined);
      return path;
    }),
  ],
  [
    'renamed',
    file((directory, random, path) => {
      const to = join(pick(random, directory.topics()), pick(random, WRONG_NAMES));
      if (!fs.existsSync(dirname(directory.at(to)))) return undefined;
      directory.move(path, to);
      return `${path} to ${to}`;
    }),
  ],
  [
    'copied',
    file((directory, random, path) => {
      const to = random() < 0.5 ? join(dirname(path), pick(random, WRONG_NAMES)) : pick(random, directory.files());
      if (to === path || !fs.existsSync(dirname(directory.at(to)))) return undefined;
      return directory.copy(path, to) ? `${path} to ${to}` : undefined;
    }),
  ],
  [
    'swapped',
    file((directory, random, path) => {
      const other = pick(random, directory.files(random() < 0.8 ? new RegExp(`\\${path.slice(path.lastIndexOf('.'))}$`) : undefined));
      if (other === path) return undefined;
      directory.swap(path, other);
      return `${path} and ${other}`;
    }),
  ],
  [
    'pair swapped',
    (directory, random) => {
      const found = pairs(directory);
      const [one, other] = [pick(random, found), pick(random, found)];
      if (one === undefined || other === undefined || one === other) return undefined;
      for (const ending of ['.mmm', '.idx']) directory.swap(one + ending, other + ending);
      return `${one} and ${other}`;
    },
  ],
  [
    'pair copied',
    (directory, random) => {
      const from = pick(random, pairs(directory));
      if (from === undefined) return undefined;
      const to = join(pick(random, directory.topics()), String(below(random, 60)).padStart(19, '0'));
      if (to === from) return undefined;
      const copied = ['.mmm', '.idx'].filter((ending) => directory.copy(from + ending, to + ending));
      return copied.length > 0 ? `${from} to ${to}, ${copied.join(' and ')}` : undefined;
    },
  ],
  [
    'empty files of a segment',
    (directory, random) => {
      const at = join(pick(random, directory.topics()), String(below(random, 60)).padStart(19, '0'));
      for (const ending of pick(random, [['.mmm'], ['.idx'], ['.mmm', '.idx']])) {
        directory.replace(at + ending, (path) => fs.writeFileSync(path, ''));
      }
      return at;
    },
  ],
  [
    'topics moved',
    (directory, random) => {
      const [one, other] = [pick(random, directory.topics()), pick(random, [...directory.topics(), 'order.copied', 'No Topic', '.hidden'])];
      if (one === other) return undefined;
      const act = pick(random, ['swap', 'move', 'copy'] as const);
      if (act === 'swap' && !fs.existsSync(directory.at(other))) return undefined;
      if (act === 'move' && directory.topics().length === 1) return undefined;
      if (directory[act](one, other) === false) return undefined;
      return `${act} ${one} ${other}`;
    },
  ],
  [
    'something foreign',
    (directory, random) => {
      const at = join(pick(random, ['', ...directory.directories()]), pick(random, [...WRONG_NAMES, 'lost+found', 'order.created.tmp']));
      if (fs.existsSync(directory.at(at)) || !fs.existsSync(dirname(directory.at(at)))) return undefined;
      directory.replace(at, (path) =>
        random() < 0.3 ? fs.mkdirSync(path) : fs.writeFileSync(path, noise(random, pick(random, [0, 1, 8, 300]))),
      );
      return at;
    },
  ],
  [
    'another thing in its place',
    (directory, random) => {
      const path = pick(random, [...directory.files(), ...directory.directories(), '.mmmq.lock']);
      if (!fs.existsSync(directory.at(path)) || (directory.topics().length === 1 && directory.topics()[0] === path)) return undefined;
      const thing = pick(random, ['file', 'directory', 'link', 'link to nothing', 'link to a directory', 'link to itself']);
      const taken = thing === 'link' ? directory.takeOutside(path) : undefined;
      directory.replace(path, (at) => {
        if (thing === 'file') fs.writeFileSync(at, noise(random, below(random, 20)));
        else if (thing === 'directory') fs.mkdirSync(at);
        else if (thing === 'link to a directory') fs.symlinkSync(directory.dir, at);
        else if (thing === 'link to itself') fs.symlinkSync(at, at);
        else fs.symlinkSync(taken ?? '/nowhere/at/all', at);
      });
      return `${thing} for ${path}`;
    },
  ],
  [
    'a second name',
    file((directory, random, path) => {
      const to = join(pick(random, ['', ...directory.directories()]), 'second-name');
      if (fs.existsSync(directory.at(to))) return undefined;
      fs.linkSync(directory.at(path), directory.at(to));
      return `${to} for ${path}`;
    }),
  ],
];
