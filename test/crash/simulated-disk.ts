import { dirname, basename } from 'node:path';
import { FileError, OpenMode, type DirectoryEntry, type File, type FileSystem, type Room } from '../../src/storage/file-system/index.js';
import { below, seededRandom, type Random } from './seeded-random.js';

/*
 * A disk in memory that forgets what it may forget. What it can do:
 *
 * - Everything is there twice: as the process sees it (the kernel's cache) and as it stands on the disk. Each call changes the cache and
 *   leaves changes that are pending: a write one for the size, where the file grows, and one for each sector of 512 bytes that it touches,
 *   which holds the whole sector as the cache has it; a truncation one for the size; a new or removed name one for the directory's entry.
 * - A sync makes durable what was pending for its file or directory when it STARTED, at the moment at which it ends. A name is durable only
 *   after its directory was synced, whatever became of the file.
 * - A power cut (`powerCut`) leaves the durable state and any chosen part of what was pending, in any combination across files and within
 *   one: data behind the size is lost, a size without data reads as zeros, a sector may be torn: at any byte where it grows the file, at a
 *   multiple of eight where it overwrites, as nothing tears eight aligned bytes.
 * - `crashImages` names the parts that are tried: none, all, every prefix, each one missing, each one alone, sizes and names without data,
 *   each sector torn with and without what comes after it, random parts.
 * - A killed process (`state` given to a new disk) leaves the cache with all that is pending, for the next process and a later power cut.
 * - Any call can fail (`Fault`): with any errno, once, several times or for ever, or be short when it reads or writes. A write that fails
 *   may have written a part. A sync that fails has dropped what it could not write, as kernels do: part of it is durable, part is still
 *   pending, and part is seen in the cache and will never reach the disk, however often it is synced again. Names and
 *   cuts are only durable or pending after a failed sync: file systems journal them, and stop rather than forget them.
 * - Calls take turns of the microtask queue, a number of them that the seed decides, so that concurrent calls overlap in many ways. There is
 *   no timer and no real input or output; the same seed gives the same run.
 *
 * A rename is one change of its directory: old or new, never both or none. There are no links, and nothing rots: what is durable stays.
 */

export const SECTOR_BYTES = 512;
const MAX_TURNS_PER_CALL = 3;
const MAX_TURNS_PER_SYNC = 9;
const ROOT_INODE = 0;
/** A sync that could not even begin: nothing is lost by it. */
const NOT_BEGUN: ReadonlySet<string> = new Set(['EMFILE', 'EACCES']);
const WELL: Room = { bytes: 2 ** 40, files: 2 ** 20 };
const PATH_SEPARATOR = '/';

export type Operation =
  | 'open'
  | 'list'
  | 'makeDirectory'
  | 'syncDirectory'
  | 'remove'
  | 'rename'
  | 'room'
  | 'size'
  | 'read'
  | 'write'
  | 'truncate'
  | 'sync'
  | 'tryLock'
  | 'close';

const CHANGING: ReadonlySet<Operation> = new Set([
  'open',
  'makeDirectory',
  'syncDirectory',
  'remove',
  'rename',
  'write',
  'truncate',
  'sync',
]);

/** One thing that is not on the disk yet. */
export type Change =
  | {
      readonly kind: 'data';
      readonly inode: number;
      readonly sector: number;
      readonly bytes: Buffer;
      readonly from: number;
      readonly to: number;
    }
  | { readonly kind: 'size'; readonly inode: number; readonly size: number; readonly isCut: boolean }
  | { readonly kind: 'name'; readonly inode: number; readonly names: Names };

/** What stands under names of a directory now; all of them change together. */
type Names = Readonly<Record<string, number | undefined>>;

/** A file's bytes. `data` can reach beyond `size`: such bytes came to the disk before the size did. */
interface Content {
  readonly data: Buffer;
  readonly size: number;
}

interface Inode {
  readonly kind: 'file' | 'directory';
  readonly cached: Content;
  readonly durable: Content;
  readonly cachedNames: ReadonlyMap<string, number>;
  readonly durableNames: ReadonlyMap<string, number>;
}

/** A disk at a moment. Never changed. */
export interface DiskState {
  readonly inodes: ReadonlyMap<number, Inode>;
  readonly pending: readonly Change[];
}

/** What goes wrong. It strikes the call with the number `call`, and after that calls of the same operation. */
export interface Fault {
  readonly call: number;
  /** An errno, or `short` for a read or write that moves only a part. */
  readonly error: string;
  readonly times: number;
}

/** A call that is about to change something: what a power cut at this moment may leave is the state of the disk. */
export interface Step {
  readonly call: number;
  readonly operation: Operation;
  readonly path: string;
}

const EMPTY: Content = { data: Buffer.alloc(0), size: 0 };
const NO_NAMES: ReadonlyMap<string, number> = new Map();

export class SimulatedDisk implements FileSystem {
  /** Every call that there was, in order. */
  readonly calls: Operation[] = [];
  /** Called at each step, before it takes effect. */
  onStep: ((step: Step) => void) | undefined;
  private readonly inodes: Map<number, Inode>;
  private pending: readonly Change[];
  private readonly locked = new Set<number>();
  private readonly random: Random;
  private fault: Fault | undefined;
  private struckOperation: Operation | undefined;
  private strikesLeft = 0;

  private constructor(state: DiskState, seed: number) {
    this.inodes = new Map(state.inodes);
    this.pending = state.pending;
    this.random = seededRandom(seed);
  }

  static empty(seed: number): SimulatedDisk {
    return new SimulatedDisk({ inodes: new Map([[ROOT_INODE, newInode('directory')]]), pending: [] }, seed);
  }

  /** The disk as the next process finds it: locks are gone, the cache is still there. */
  static of(state: DiskState, seed: number): SimulatedDisk {
    return new SimulatedDisk(state, seed);
  }

  get state(): DiskState {
    return { inodes: new Map(this.inodes), pending: this.pending };
  }

  get hasStruck(): boolean {
    return this.struckOperation !== undefined;
  }

  fail(fault: Fault): void {
    this.fault = fault;
    this.strikesLeft = fault.times;
  }

  /** Nothing fails any more. */
  heal(): void {
    this.strikesLeft = 0;
    this.fault = undefined;
  }

  /** Every file as a process sees it, by path. */
  files(): Map<string, Buffer> {
    const found = new Map<string, Buffer>();
    const collect = (inode: number, path: string): void => {
      for (const [name, child] of [...this.inode(inode).cachedNames].sort()) {
        const { kind, cached } = this.inode(child);
        if (kind === 'directory') collect(child, `${path}/${name}`);
        else found.set(`${path}/${name}`, visible(cached));
      }
    };
    collect(ROOT_INODE, '');
    return found;
  }

  open(path: string, mode: OpenMode): Promise<File> {
    return this.call(
      'open',
      path,
      () => {
        const existing = this.find(path);
        if (existing !== undefined && mode === OpenMode.NEW) throw new FileError('open', path, 'EEXIST');
        if (existing !== undefined && this.inode(existing).kind === 'directory') throw new FileError('open', path, 'EISDIR');
        if (existing === undefined && (mode === OpenMode.EXISTING || mode === OpenMode.READING))
          throw new FileError('open', path, 'ENOENT');
        return new SimulatedFile(this, path, existing ?? this.make(path, 'file'));
      },
      mode === OpenMode.NEW || mode === OpenMode.EXISTING_OR_NEW,
    );
  }

  list(path: string): Promise<readonly DirectoryEntry[]> {
    return this.call('list', path, () => {
      const { cachedNames } = this.inode(this.directory('list', path));
      return [...cachedNames].map(([name, inode]) => ({ name, kind: this.inode(inode).kind })).sort((a, b) => (a.name < b.name ? -1 : 1));
    });
  }

  makeDirectory(path: string): Promise<boolean> {
    return this.call('makeDirectory', path, () => {
      const existing = this.find(path);
      if (existing !== undefined && this.inode(existing).kind !== 'directory') throw new FileError('make directory', path, 'ENOTDIR');
      if (existing === undefined) this.make(path, 'directory');
      return existing === undefined;
    });
  }

  syncDirectory(path: string): Promise<void> {
    return this.syncInode('syncDirectory', path, () => this.directory('sync directory', path));
  }

  remove(path: string): Promise<void> {
    return this.call('remove', path, () => {
      if (this.find(path) === undefined) throw new FileError('remove', path, 'ENOENT');
      this.name(this.directory('remove', dirname(path)), { [basename(path)]: undefined });
    });
  }

  rename(from: string, to: string): Promise<void> {
    return this.call('rename', from, () => {
      const inode = this.find(from);
      if (inode === undefined) throw new FileError('rename', from, 'ENOENT');
      if (dirname(from) !== dirname(to)) throw new FileError('rename', from, 'EXDEV');
      this.name(this.directory('rename', dirname(from)), { [basename(from)]: undefined, [basename(to)]: inode });
    });
  }

  room(path: string): Promise<Room> {
    return this.call('room', path, () => WELL);
  }

  /** @internal for the files of this disk */
  size(path: string, inode: number): Promise<number> {
    return this.call('size', path, () => this.inode(inode).cached.size);
  }

  /** @internal */
  read(path: string, inode: number, buffer: Buffer, position: number): Promise<number> {
    return this.call('read', path, (isShort) => {
      const bytes = visible(this.inode(inode).cached).subarray(position, position + (isShort ? this.part(buffer.length) : buffer.length));
      return bytes.copy(buffer);
    });
  }

  /** @internal */
  write(path: string, inode: number, buffer: Buffer, position: number): Promise<number> {
    return this.call('write', path, (isShort, isFailing) => {
      const length = isFailing ? below(this.random, buffer.length) : isShort ? this.part(buffer.length) : buffer.length;
      if (length > 0) this.put(inode, buffer.subarray(0, length), position);
      return length;
    });
  }

  /** @internal */
  truncate(path: string, inode: number, size: number): Promise<void> {
    return this.call('truncate', path, () => {
      const { cached } = this.inode(inode);
      if (size !== cached.size) this.change({ kind: 'size', inode, size, isCut: size < cached.size });
    });
  }

  /** @internal */
  sync(path: string, inode: number): Promise<void> {
    return this.syncInode('sync', path, () => inode);
  }

  /** @internal */
  tryLock(path: string, inode: number): Promise<boolean> {
    return this.call('tryLock', path, () => {
      if (this.locked.has(inode)) return false;
      this.locked.add(inode);
      return true;
    });
  }

  /** @internal */
  isAtItsPath(path: string, inode: number): boolean {
    return this.find(path) === inode;
  }

  /** @internal */
  close(path: string, inode: number, hasLock: boolean): Promise<void> {
    return this.call('close', path, () => {
      if (hasLock) this.locked.delete(inode);
    });
  }

  private async call<T>(
    operation: Operation,
    path: string,
    act: (isShort: boolean, isFailing: boolean) => T,
    isChanging = CHANGING.has(operation),
  ): Promise<T> {
    const error = this.strike(operation);
    await this.turns(isChanging ? MAX_TURNS_PER_CALL : 1);
    if (isChanging) this.onStep?.({ call: this.calls.length, operation, path });
    if (error !== undefined && error !== 'short') {
      if (operation === 'write') act(false, true);
      throw new FileError(operation, path, error);
    }
    return act(error === 'short', false);
  }

  private async syncInode(operation: Operation, path: string, find: () => number): Promise<void> {
    const error = this.strike(operation);
    const inode = find();
    const covered = new Set(this.pending.filter((change) => change.inode === inode));
    await this.turns(MAX_TURNS_PER_SYNC);
    this.onStep?.({ call: this.calls.length, operation, path });
    const isFailing = error !== undefined && error !== 'short';
    const left: Change[] = [];
    for (const change of this.pending) {
      const fate = covered.has(change) ? this.fateInSync(change, isFailing ? error : undefined) : 'pending';
      if (fate === 'pending') left.push(change);
      else if (fate === 'durable') this.settle(change);
    }
    this.pending = left;
    if (isFailing) throw new FileError(operation, path, error);
  }

  private fateInSync(change: Change, error: string | undefined): 'durable' | 'pending' | 'lost' {
    if (error === undefined) return 'durable';
    if (NOT_BEGUN.has(error)) return 'pending';
    const fate = (['durable', 'pending', 'lost', 'lost'] as const)[below(this.random, 4)] ?? 'lost';
    const isJournaled = change.kind === 'name' || (change.kind === 'size' && change.isCut);
    return isJournaled && fate === 'lost' ? 'pending' : fate;
  }

  private sizeOnceSynced(inode: number): number {
    const change = this.pending.findLast((candidate) => candidate.kind === 'size' && candidate.inode === inode);
    return change?.kind === 'size' ? change.size : this.inode(inode).durable.size;
  }

  private strike(operation: Operation): string | undefined {
    const call = this.calls.length;
    this.calls.push(operation);
    if (this.fault === undefined || this.strikesLeft <= 0) return undefined;
    if (this.struckOperation === undefined ? call !== this.fault.call : operation !== this.struckOperation) return undefined;
    this.struckOperation = operation;
    this.strikesLeft -= 1;
    return this.fault.error;
  }

  private async turns(max: number): Promise<void> {
    for (let turns = 1 + below(this.random, max); turns > 0; turns -= 1) await undefined;
  }

  /** At least one byte, and not all of them where that can be. */
  private part(length: number): number {
    return Math.max(1, below(this.random, length));
  }

  private put(inode: number, bytes: Buffer, position: number): void {
    const end = position + bytes.length;
    if (end > this.inode(inode).cached.size) this.change({ kind: 'size', inode, size: end, isCut: false });
    // A failed sync has dropped the size that the cache still shows; writing up there again brings it back.
    else if (end > this.sizeOnceSynced(inode)) this.pending = [...this.pending, { kind: 'size', inode, size: end, isCut: false }];
    const written = withRoom(this.inode(inode).cached.data, end);
    bytes.copy(written, position);
    for (let sector = Math.floor(position / SECTOR_BYTES); sector * SECTOR_BYTES < end; sector += 1) {
      const start = sector * SECTOR_BYTES;
      const content = Buffer.alloc(SECTOR_BYTES);
      written.copy(content, 0, start, Math.min(start + SECTOR_BYTES, written.length));
      this.change({
        kind: 'data',
        inode,
        sector,
        bytes: content,
        from: Math.max(0, position - start),
        to: Math.min(SECTOR_BYTES, end - start),
      });
    }
  }

  private change(change: Change): void {
    const inode = this.inode(change.inode);
    this.inodes.set(
      change.inode,
      change.kind === 'name'
        ? { ...inode, cachedNames: named(inode.cachedNames, change) }
        : { ...inode, cached: changed(inode.cached, change) },
    );
    this.pending = [...this.pending, change];
  }

  private settle(change: Change): void {
    this.inodes.set(change.inode, settled(this.inode(change.inode), change));
  }

  private make(path: string, kind: Inode['kind']): number {
    const parent = this.directory('open', dirname(path));
    const inode = this.inodes.size;
    this.inodes.set(inode, newInode(kind));
    this.name(parent, { [basename(path)]: inode });
    return inode;
  }

  private name(directory: number, names: Names): void {
    this.change({ kind: 'name', inode: directory, names });
  }

  private directory(operation: string, path: string): number {
    const inode = this.find(path);
    if (inode === undefined) throw new FileError(operation, path, 'ENOENT');
    if (this.inode(inode).kind !== 'directory') throw new FileError(operation, path, 'ENOTDIR');
    return inode;
  }

  private find(path: string): number | undefined {
    let inode: number | undefined = ROOT_INODE;
    for (const name of path.split(PATH_SEPARATOR)) {
      if (name === '') continue;
      inode = this.inode(inode).cachedNames.get(name);
      if (inode === undefined) return undefined;
    }
    return inode;
  }

  private inode(inode: number): Inode {
    const found = this.inodes.get(inode);
    if (found === undefined) throw new Error(`there is no inode ${inode}`);
    return found;
  }
}

class SimulatedFile implements File {
  private hasLock = false;

  constructor(
    private readonly disk: SimulatedDisk,
    readonly path: string,
    private readonly inode: number,
  ) {}

  size(): Promise<number> {
    return this.disk.size(this.path, this.inode);
  }

  read(buffer: Buffer, position: number): Promise<number> {
    return this.disk.read(this.path, this.inode, buffer, position);
  }

  write(buffer: Buffer, position: number): Promise<number> {
    return this.disk.write(this.path, this.inode, buffer, position);
  }

  truncate(size: number): Promise<void> {
    return this.disk.truncate(this.path, this.inode, size);
  }

  sync(): Promise<void> {
    return this.disk.sync(this.path, this.inode);
  }

  async tryLock(): Promise<boolean> {
    this.hasLock = await this.disk.tryLock(this.path, this.inode);
    return this.hasLock;
  }

  async isAtItsPath(): Promise<boolean> {
    return this.disk.isAtItsPath(this.path, this.inode);
  }

  close(): Promise<void> {
    return this.disk.close(this.path, this.inode, this.hasLock);
  }
}

/** What becomes of a pending change in a power cut; a number is how many bytes of a sector's new ones came to the disk. */
export type Fate = 'kept' | 'lost' | number;

/** The disk after a power cut. @param fateOf is asked for every pending change, in the order in which they were made */
export function powerCut(state: DiskState, fateOf: (change: Change, index: number) => Fate): DiskState {
  const inodes = new Map(state.inodes);
  for (const [index, change] of state.pending.entries()) {
    const fate = fateOf(change, index);
    const inode = inodes.get(change.inode);
    if (fate === 'lost' || inode === undefined) continue;
    inodes.set(change.inode, settled(inode, typeof fate === 'number' ? torn(change, inode.durable, fate) : change));
  }
  for (const [id, inode] of inodes) {
    const durable = { data: visible(inode.durable), size: inode.durable.size };
    inodes.set(id, { ...inode, durable, cached: durable, cachedNames: inode.durableNames });
  }
  return { inodes, pending: [] };
}

export interface CrashImage {
  readonly name: string;
  readonly state: DiskState;
}

/** Every disk that a power cut at this moment is tried to leave, each combination once. */
export function* crashImages(state: DiskState, random: Random, randomCount: number): Generator<CrashImage> {
  const { pending } = state;
  const seen = new Set<string>();
  const image = function* (name: string, fateOf: (change: Change, index: number) => Fate): Generator<CrashImage> {
    const fates = pending.map(fateOf);
    const combination = fates.join();
    if (seen.has(combination)) return;
    seen.add(combination);
    yield { name, state: powerCut(state, (_, index) => fates[index] ?? 'lost') };
  };
  const keepIf = (isKept: boolean): Fate => (isKept ? 'kept' : 'lost');
  yield* image('none', () => 'lost');
  yield* image('all', () => 'kept');
  yield* image('sizes and names without data', ({ kind }) => keepIf(kind !== 'data'));
  for (const [at, change] of pending.entries()) {
    yield* image(`the first ${at + 1}`, (_, index) => keepIf(index <= at));
    yield* image(`all but ${at}`, (_, index) => keepIf(index !== at));
    yield* image(`only ${at}`, (_, index) => keepIf(index === at));
    if (change.kind !== 'data') continue;
    const written = 1 + below(random, Math.max(1, change.to - change.from - 1));
    yield* image(`the first ${at + 1}, the last torn after ${written}`, (_, index) => (index === at ? written : keepIf(index < at)));
    yield* image(`all, ${at} torn after ${written}`, (_, index) => (index === at ? written : 'kept'));
  }
  if (pending.length < 2) return;
  for (let count = 0; count < randomCount; count += 1) {
    const share = random();
    yield* image(`random ${count}`, (change) => {
      if (change.kind === 'data' && random() < 0.1) return 1 + below(random, Math.max(1, change.to - change.from - 1));
      return keepIf(random() < share);
    });
  }
}

function newInode(kind: Inode['kind']): Inode {
  return { kind, cached: EMPTY, durable: EMPTY, cachedNames: NO_NAMES, durableNames: NO_NAMES };
}

function settled(inode: Inode, change: Change): Inode {
  return change.kind === 'name'
    ? { ...inode, durableNames: named(inode.durableNames, change) }
    : { ...inode, durable: changed(inode.durable, change) };
}

function named(names: ReadonlyMap<string, number>, change: Extract<Change, { kind: 'name' }>): ReadonlyMap<string, number> {
  const result = new Map(names);
  for (const [name, child] of Object.entries(change.names)) {
    if (child === undefined) result.delete(name);
    else result.set(name, child);
  }
  return result;
}

function changed(content: Content, change: Exclude<Change, { kind: 'name' }>): Content {
  if (change.kind === 'size') {
    return { data: change.size < content.size ? content.data.subarray(0, change.size) : content.data, size: change.size };
  }
  const start = change.sector * SECTOR_BYTES;
  const data = withRoom(content.data, start + change.to);
  change.bytes.copy(data, start, 0, Math.min(SECTOR_BYTES, data.length - start));
  return { ...content, data };
}

/** The sector with only the first of its new bytes. */
function torn(change: Change, before: Content, written: number): Change {
  if (change.kind !== 'data') return change;
  const start = change.sector * SECTOR_BYTES;
  const overwrites = start + change.from < before.size;
  const cut = change.from + (overwrites ? Math.floor(written / 8) * 8 : written);
  const bytes = Buffer.alloc(SECTOR_BYTES);
  const old = visible(before);
  if (old.length > start) old.copy(bytes, 0, start);
  change.bytes.copy(bytes, 0, 0, Math.min(cut, change.to));
  return { ...change, bytes };
}

/** A copy that can be written to up to `size`. */
function withRoom(data: Buffer, size: number): Buffer {
  const copy = Buffer.alloc(Math.max(data.length, size));
  data.copy(copy);
  return copy;
}

/** The bytes that a reader gets: zeros where the size came without data. */
function visible({ data, size }: Content): Buffer {
  return data.length === size ? data : data.length > size ? data.subarray(0, size) : withRoom(data, size);
}
