import { dirname, basename } from 'node:path';
import {
  FileError,
  OpenMode,
  type DirectoryEntry,
  type File,
  type FileSystem,
  type Room,
  type Stamp,
} from '../../src/storage/file-system/index.js';
import {
  EMPTY_DISK,
  filesOf,
  named,
  newInode,
  ROOT_INODE,
  SECTOR_BYTES,
  settled,
  stampOf,
  visible,
  withRoom,
  withSize,
  type Change,
  type Content,
  type DiskState,
  type Inode,
  type Names,
} from './disk-state.js';
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
 *   each sector torn (behind what came before it, among all, alone), random parts, and every combination where they are not too many.
 * - A killed process (`state` given to a new disk) leaves the cache with all that is pending, for the next process and a later power cut.
 * - Every change of a file or a directory shows in its stamp, and no two stamps are the same behind a power cut.
 * - Any call can fail (`Fault`): with any errno, once, several times or for ever, or be short when it reads or writes. A write that fails
 *   may have written a part: of eight aligned bytes that were there all or none, as with tearing. A sync that fails has dropped what it could not write, as kernels do: part of it is durable, part is still
 *   pending, and part is seen in the cache and will never reach the disk, however often it is synced again. Names and
 *   cuts are only durable or pending after a failed sync: file systems journal them, and stop rather than forget them.
 * - It can have a size (`limitRoom`): a write beyond the room puts what fits and then fails with ENOSPC, as does a new name; a truncation and a
 *   removal give room back, for the process at once. An overwrite in place needs none. The files of a power cut may take more than there is.
 * - Calls take turns of the microtask queue, a number of them that the seed decides, so that concurrent calls overlap in many ways. There is
 *   no timer and no real input or output; the same seed gives the same run.
 *
 * A rename is one change of its directory: old or new, never both or none. There are no links, and nothing rots: what is durable stays.
 */

const MAX_TURNS_PER_CALL = 3;
const MAX_TURNS_PER_SYNC = 9;
/** A sync that could not even begin: nothing is lost by it. */
const NOT_BEGUN: ReadonlySet<string> = new Set(['EMFILE', 'EACCES']);
const MAX_ROOM_BYTES = 2 ** 40;
const MAX_ROOM_FILES = 2 ** 20;
/** What a file or a directory takes that holds nothing. */
const INODE_BYTES = SECTOR_BYTES;
const PATH_SEPARATOR = '/';

export type Operation =
  | 'open'
  | 'list'
  | 'makeDirectory'
  | 'syncDirectory'
  | 'remove'
  | 'rename'
  | 'room'
  | 'stamp'
  | 'size'
  | 'read'
  | 'write'
  | 'truncate'
  | 'sync'
  | 'tryLock'
  | 'close';

type DataChange = Extract<Change, { kind: 'data' }>;

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

/** Something that a process asked of the disk. */
export interface Call {
  readonly operation: Operation;
  readonly path: string;
}

/** An error of the disk in a step: once, several times, until somebody mends the disk. */
const ERRORS = ['EIO', 'ENOSPC', 'EMFILE', 'EACCES'];
const STRIKES = [1, 3, Number.POSITIVE_INFINITY];

/** What can go wrong with a call: every error, once, several times and for ever. */
export function faultsAt(call: number, operation: Operation): Fault[] {
  const errors = operation === 'read' || operation === 'write' ? [...ERRORS, 'short'] : ERRORS;
  return errors.flatMap((error) => STRIKES.map((times) => ({ call, error, times })));
}

export class SimulatedDisk implements FileSystem {
  /** Every call that there was, in order. */
  readonly calls: Call[] = [];
  /** Called at each step, before it takes effect. */
  onStep: ((step: Step) => void) | undefined;
  private readonly inodes: Map<number, Inode>;
  private pending: readonly Change[];
  private capacityBytes: number;
  private readonly boot: number;
  private changes: number;
  private readonly locked = new Set<number>();
  /** Files and directories of which a sync is under way. */
  private readonly inSync: number[] = [];
  private readonly random: Random;
  private fault: Fault | undefined;
  private struckOperation: Operation | undefined;
  private strikesLeft = 0;

  private constructor(state: DiskState, seed: number) {
    this.inodes = new Map(state.inodes);
    this.pending = state.pending;
    this.capacityBytes = state.capacityBytes;
    this.boot = state.boot;
    this.changes = Math.max(...[...state.inodes.values()].map(({ changed }) => changed));
    this.random = seededRandom(seed);
  }

  static empty(seed: number): SimulatedDisk {
    return new SimulatedDisk(EMPTY_DISK, seed);
  }

  /** The disk as the next process finds it: locks are gone, the cache is still there. */
  static of(state: DiskState, seed: number): SimulatedDisk {
    return new SimulatedDisk(state, seed);
  }

  get state(): DiskState {
    return { inodes: new Map(this.inodes), pending: this.pending, capacityBytes: this.capacityBytes, boot: this.boot };
  }

  get hasStruck(): boolean {
    return this.struckOperation !== undefined;
  }

  fail(fault: Fault): void {
    this.fault = fault;
    this.strikesLeft = fault.times;
  }

  /** @param bytes how much may still be written from now on; Infinity where the disk is never full */
  limitRoom(bytes: number): void {
    this.capacityBytes = Number.POSITIVE_INFINITY;
    if (Number.isFinite(bytes)) this.capacityBytes = this.takenBytes() + bytes;
  }

  /** Whether it has no room for as much as an empty file. */
  get isFull(): boolean {
    return this.freeBytes() < INODE_BYTES;
  }

  /** Nothing fails any more. */
  heal(): void {
    this.strikesLeft = 0;
    this.fault = undefined;
  }

  /** Every file as a process sees it, by path. */
  files(): Map<string, Buffer> {
    return filesOf(this.state);
  }

  open(path: string, mode: OpenMode): Promise<File> {
    return this.call(
      'open',
      path,
      () => {
        const existing = this.find(path);
        if (existing !== undefined && mode === OpenMode.NEW) throw new FileError('open', path, 'EEXIST');
        if (existing !== undefined && this.inode(existing).kind === 'directory') throw new FileError('open', path, 'EISDIR');
        if (existing === undefined && mode !== OpenMode.NEW && mode !== OpenMode.EXISTING_OR_NEW)
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
    return this.call('room', path, () => ({ bytes: Math.min(MAX_ROOM_BYTES, this.freeBytes()), files: MAX_ROOM_FILES }));
  }

  stamp(path: string): Promise<Stamp> {
    return this.call('stamp', path, () => {
      const inode = this.find(path);
      if (inode === undefined) throw new FileError('stat', path, 'ENOENT');
      return { text: stampOf(this.state, inode), size: this.inode(inode).cached.size, settlesInMs: 0 };
    });
  }

  inStart<T>(work: () => Promise<T>): Promise<T> {
    return work();
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
      const { size } = this.inode(inode).cached;
      const part = isFailing ? below(this.random, buffer.length) : isShort ? this.part(buffer.length) : buffer.length;
      const whole = position < size && part < buffer.length ? Math.floor((position + part) / 8) * 8 - position : part;
      const asked = whole > 0 ? whole : isFailing ? 0 : buffer.length;
      const room = size + this.freeBytes() - position;
      const length = Math.max(0, Math.min(asked, room));
      if (length > 0) this.put(inode, buffer.subarray(0, length), position);
      // What still fits is written, and the next write has no room at all.
      else if (asked > 0 && !isFailing) throw new FileError('write', path, 'ENOSPC');
      return length;
    });
  }

  /** @internal */
  truncate(path: string, inode: number, size: number): Promise<void> {
    return this.call('truncate', path, () => {
      const { cached } = this.inode(inode);
      if (size - cached.size > this.freeBytes()) throw new FileError('truncate', path, 'ENOSPC');
      if (size !== cached.size) this.resize(inode, size, withSize(cached, size));
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
    const error = this.strike(operation, path);
    await this.turns(isChanging ? MAX_TURNS_PER_CALL : 1);
    if (isChanging) this.onStep?.({ call: this.calls.length, operation, path });
    if (error !== undefined && error !== 'short') {
      if (operation === 'write') act(false, true);
      throw new FileError(operation, path, error);
    }
    return act(error === 'short', false);
  }

  private async syncInode(operation: Operation, path: string, find: () => number): Promise<void> {
    const error = this.strike(operation, path);
    const inode = find();
    const covered = new Set(this.pending.filter((change) => change.inode === inode));
    this.inSync.push(inode);
    await this.turns(MAX_TURNS_PER_SYNC);
    this.inSync.splice(this.inSync.indexOf(inode), 1);
    this.onStep?.({ call: this.calls.length, operation, path });
    const isFailing = error !== undefined && error !== 'short';
    const left: Change[] = [];
    const reached: Change[] = [];
    for (const change of this.pending) {
      const fate = covered.has(change) ? this.fateInSync(change, isFailing ? error : undefined) : 'pending';
      if (fate === 'pending') left.push(change);
      else if (fate === 'durable') reached.push(change);
    }
    if (reached.length > 0) this.settle(inode, reached);
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

  private strike(operation: Operation, path: string): string | undefined {
    const call = this.calls.length;
    this.calls.push({ operation, path });
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
    const { cached } = this.inode(inode);
    const written = withRoom(cached.data, end);
    bytes.copy(written, position);
    const after = { data: written, size: Math.max(cached.size, end) };
    if (end > cached.size) this.resize(inode, end, after);
    else {
      // A failed sync has dropped the size that the cache still shows; writing up there again brings it back.
      if (end > this.sizeOnceSynced(inode)) this.pending = [...this.pending, { kind: 'size', inode, size: end, isCut: false }];
      this.inodes.set(inode, { ...this.inode(inode), cached: after, changed: this.nextChange() });
    }
    const sectors: Change[] = [];
    for (let sector = Math.floor(position / SECTOR_BYTES); sector * SECTOR_BYTES < end; sector += 1) {
      const start = sector * SECTOR_BYTES;
      const content = Buffer.alloc(SECTOR_BYTES);
      written.copy(content, 0, start, Math.min(start + SECTOR_BYTES, written.length));
      const change: DataChange = {
        kind: 'data',
        inode,
        sector,
        bytes: content,
        from: Math.max(0, position - start),
        to: Math.min(SECTOR_BYTES, end - start),
      };
      if (!this.isPending(change)) sectors.push(change);
    }
    this.pending = [...this.pending, ...sectors];
  }

  /** Whether the same is on its way already: written again it is no further change. While a sync is under way nobody knows what it covers. */
  private isPending({ inode, sector, bytes, from, to }: DataChange): boolean {
    if (this.inSync.includes(inode)) return false;
    const before = this.pending.findLast(
      (change) => change.inode === inode && (change.kind === 'size' || (change.kind === 'data' && change.sector === sector)),
    );
    return before?.kind === 'data' && before.from === from && before.to === to && before.bytes.equals(bytes);
  }

  private resize(inode: number, size: number, cached: Content): void {
    const isCut = size < this.inode(inode).cached.size;
    this.inodes.set(inode, { ...this.inode(inode), cached, changed: this.nextChange() });
    this.pending = [...this.pending, { kind: 'size', inode, size, isCut }];
  }

  /** These changes are on the disk now. Where nothing is left to tell the disk from the cache, they are one. */
  private settle(inode: number, changes: readonly Change[]): void {
    const after = settled(this.inode(inode), changes);
    const { cached, durable, cachedNames, durableNames } = after;
    const isOne = cached.size === durable.size && visible(cached).equals(visible(durable));
    const hasSameNames = cachedNames.size === durableNames.size && [...cachedNames].every(([name, id]) => durableNames.get(name) === id);
    this.inodes.set(inode, {
      ...after,
      durable: isOne ? cached : durable,
      durableNames: hasSameNames ? cachedNames : durableNames,
    });
  }

  private make(path: string, kind: Inode['kind']): number {
    const parent = this.directory('open', dirname(path));
    if (this.freeBytes() < INODE_BYTES) throw new FileError(kind === 'file' ? 'open' : 'make directory', path, 'ENOSPC');
    const inode = this.inodes.size;
    this.inodes.set(inode, newInode(kind));
    this.name(parent, { [basename(path)]: inode });
    return inode;
  }

  private name(directory: number, names: Names): void {
    const change = { kind: 'name', inode: directory, names } as const;
    const inode = this.inode(directory);
    this.inodes.set(directory, { ...inode, cachedNames: named(inode.cachedNames, change), changed: this.nextChange() });
    this.pending = [...this.pending, change];
  }

  private nextChange(): number {
    this.changes += 1;
    return this.changes;
  }

  private freeBytes(): number {
    return Number.isFinite(this.capacityBytes) ? Math.max(0, this.capacityBytes - this.takenBytes()) : Number.POSITIVE_INFINITY;
  }

  /** By what has a name: what is removed gives its room back at once. */
  private takenBytes(): number {
    const bytesBelow = (id: number): number => {
      const { cached, cachedNames } = this.inode(id);
      return [...cachedNames.values()].reduce((sum, child) => sum + bytesBelow(child), INODE_BYTES + cached.size);
    };
    return bytesBelow(ROOT_INODE);
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
