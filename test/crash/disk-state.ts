import { hash } from 'node:crypto';
import { SYNCED_FILE_NAME, syncedLine } from '../../src/storage/index.js';
import { parseSegmentName } from '../../src/storage/segment/index.js';

/*
 * What a simulated disk holds at a moment, what a power cut leaves of it, and how two such states are told apart. Nothing here is ever
 * changed: a state can be kept and gone on from any number of times.
 */

export const SECTOR_BYTES = 512;
export const ROOT_INODE = 0;

/** One thing that is not on the disk yet. */
export type Change =
  | {
      readonly kind: 'data';
      readonly inode: number;
      readonly sector: number;
      /** The whole sector as the cache has it. */
      readonly bytes: Buffer;
      /** Which of its bytes were written. */
      readonly from: number;
      readonly to: number;
    }
  | { readonly kind: 'size'; readonly inode: number; readonly size: number; readonly isCut: boolean }
  | { readonly kind: 'name'; readonly inode: number; readonly names: Names };

/** What stands under names of a directory now; all of them change together. */
export type Names = Readonly<Record<string, number | undefined>>;

/** A file's bytes. `data` can reach beyond `size`: such bytes came to the disk before the size did. */
export interface Content {
  readonly data: Buffer;
  readonly size: number;
}

export interface Inode {
  readonly kind: 'file' | 'directory';
  readonly cached: Content;
  readonly durable: Content;
  readonly cachedNames: ReadonlyMap<string, number>;
  readonly durableNames: ReadonlyMap<string, number>;
  /** Another number with every change that a process made. */
  readonly changed: number;
}

export interface DiskState {
  readonly inodes: ReadonlyMap<number, Inode>;
  readonly pending: readonly Change[];
  /** All that the files may take, and each file and directory a sector; Infinity for a disk that is never full. */
  readonly capacityBytes: number;
  /** How often the machine was started. */
  readonly boot: number;
}

/** What becomes of a pending change in a power cut; a number is how many bytes of a sector's new ones came to the disk. */
export type Fate = 'kept' | 'lost' | number;

const EMPTY: Content = { data: Buffer.alloc(0), size: 0 };
const NO_NAMES: ReadonlyMap<string, number> = new Map();

export function newInode(kind: Inode['kind']): Inode {
  return { kind, cached: EMPTY, durable: EMPTY, cachedNames: NO_NAMES, durableNames: NO_NAMES, changed: 0 };
}

export const EMPTY_DISK: DiskState = {
  inodes: new Map([[ROOT_INODE, newInode('directory')]]),
  pending: [],
  capacityBytes: Number.POSITIVE_INFINITY,
  boot: 0,
};

/** The inode with the changes on the disk. All of them are its own. */
export function settled(inode: Inode, changes: readonly Change[], fates?: readonly Fate[]): Inode {
  let { durableNames } = inode;
  for (const [index, change] of changes.entries())
    if (change.kind === 'name' && fates?.[index] !== 'lost') durableNames = named(durableNames, change);
  const isUnchanged = changes.every((change, index) => change.kind === 'name' || fates?.[index] === 'lost');
  return { ...inode, durableNames, durable: isUnchanged ? inode.durable : withChanges(inode.durable, changes, fates) };
}

export function named(names: ReadonlyMap<string, number>, change: Extract<Change, { kind: 'name' }>): ReadonlyMap<string, number> {
  const result = new Map(names);
  for (const [name, child] of Object.entries(change.names)) {
    if (child === undefined) result.delete(name);
    else result.set(name, child);
  }
  return result;
}

export function withSize({ data, size }: Content, newSize: number): Content {
  return { data: newSize < size ? data.subarray(0, newSize) : data, size: newSize };
}

function withChanges(content: Content, changes: readonly Change[], fates: readonly Fate[] | undefined): Content {
  let { size } = content;
  let length = content.data.length;
  let room = length;
  for (const change of changes) if (change.kind === 'data') room = Math.max(room, change.sector * SECTOR_BYTES + change.to);
  const data = Buffer.alloc(room);
  content.data.copy(data);
  for (const [index, change] of changes.entries()) {
    const fate = fates?.[index] ?? 'kept';
    if (fate === 'lost' || change.kind === 'name') continue;
    if (change.kind === 'size') {
      if (change.size < size && change.size < length) {
        data.fill(0, change.size, length);
        length = change.size;
      }
      ({ size } = change);
      continue;
    }
    const start = change.sector * SECTOR_BYTES;
    const bytes = typeof fate === 'number' ? torn(change, visible({ data: data.subarray(0, length), size }), fate) : change.bytes;
    length = Math.max(length, start + change.to);
    bytes.copy(data, start, 0, Math.min(SECTOR_BYTES, length - start));
  }
  return { data: data.subarray(0, length), size };
}

/** The sector with only the first of its new bytes: at any byte where it grows the file; nothing tears eight aligned bytes that were there. */
function torn(change: Extract<Change, { kind: 'data' }>, before: Buffer, written: number): Buffer {
  const start = change.sector * SECTOR_BYTES;
  const overwrites = start + change.from < before.length;
  const cut = change.from + (overwrites ? Math.floor(written / 8) * 8 : written);
  const bytes = Buffer.alloc(SECTOR_BYTES);
  if (before.length > start) before.copy(bytes, 0, start);
  change.bytes.copy(bytes, 0, 0, Math.min(cut, change.to));
  return bytes;
}

/** A copy that can be written to up to `size`. */
export function withRoom(data: Buffer, size: number): Buffer {
  const copy = Buffer.alloc(Math.max(data.length, size));
  data.copy(copy);
  return copy;
}

/** The bytes that a reader gets: zeros where the size came without data. */
export function visible({ data, size }: Content): Buffer {
  return data.length === size ? data : data.length > size ? data.subarray(0, size) : withRoom(data, size);
}

/** The disk after a power cut. @param fateOf is asked for every pending change, in the order in which they were made */
export function powerCut(state: DiskState, fateOf: (change: Change, index: number) => Fate): DiskState {
  const changesOf = new Map<number, { changes: Change[]; fates: Fate[] }>();
  for (const [index, change] of state.pending.entries()) {
    const own = changesOf.get(change.inode) ?? { changes: [], fates: [] };
    own.changes.push(change);
    own.fates.push(fateOf(change, index));
    changesOf.set(change.inode, own);
  }
  const inodes = new Map(state.inodes);
  for (const [id, inode] of inodes) {
    const own = changesOf.get(id);
    const { durable, durableNames } = own === undefined ? inode : settled(inode, own.changes, own.fates);
    if (inode.cached === durable && inode.cachedNames === durableNames) continue;
    const content = durable.data.length === durable.size ? durable : { data: visible(durable), size: durable.size };
    inodes.set(id, { ...inode, durable: content, cached: content, durableNames, cachedNames: durableNames });
  }
  return { ...state, inodes, pending: [], boot: state.boot + 1 };
}

/**
 * Tells power cuts apart without making them: what they leave is the same where this text is. By what was on the disk before, and by the changes that
 * are kept.
 */
export function powerCutKey({ inodes, pending }: DiskState): (fates: readonly Fate[]) => string {
  let before = '';
  for (const [id, { durable, durableNames }] of inodes) before += `${id}:${numberOf(durable)} ${textOfNames(durableNames)};`;
  const changes = pending.map((change) => {
    if (change.kind === 'size') return `s${change.inode} ${change.size}`;
    if (change.kind === 'name') return `n${change.inode} ${Object.entries(change.names).join()}`;
    return `d${change.inode} ${change.sector} ${change.from} ${change.to} ${numberOf(change.bytes)}`;
  });
  return (fates) => {
    let text = before;
    for (const [index, fate] of fates.entries()) if (fate !== 'lost') text += `\n${changes[index]} ${fate}`;
    return hash('sha1', text, 'base64');
  };
}

const textsOfNames = new WeakMap<ReadonlyMap<string, number>, string>();

function textOfNames(names: ReadonlyMap<string, number>): string {
  let text = textsOfNames.get(names);
  if (text === undefined) textsOfNames.set(names, (text = [...names].join()));
  return text;
}

/** The state with a file of other bytes, durable, or without it. @param path of a file that is there */
export function withFile(state: DiskState, path: string, bytes: Buffer | undefined): DiskState {
  const inodes = new Map(state.inodes);
  const set = (id: number, change: Partial<Inode>): unknown => inodes.set(id, { ...(inodes.get(id) ?? newInode('file')), ...change });
  const at = path.lastIndexOf('/');
  const directory = findInode(state, path.slice(0, at)) ?? ROOT_INODE;
  if (bytes === undefined) {
    const names = new Map(inodes.get(directory)?.cachedNames);
    names.delete(path.slice(at + 1));
    set(directory, { cachedNames: names, durableNames: names });
  } else {
    const content = { data: bytes, size: bytes.length };
    set(findInode(state, path) ?? inodes.size, { cached: content, durable: content });
  }
  return { ...state, inodes };
}

/** Whether the cache shows what would not come to the disk with all that is pending: a sync has failed and forgotten it. */
export function hasForgotten(state: DiskState): boolean {
  const { inodes } = powerCut(state, () => 'kept');
  return [...state.inodes].some(([id, { cached }]) => {
    const kept = inodes.get(id)?.cached;
    return kept !== undefined && kept !== cached && !visible(kept).equals(visible(cached));
  });
}

/** What tells a process whether a file or directory was changed, as long as the machine runs. */
export function stampOf({ boot, inodes }: DiskState, id: number): string {
  const inode = inodes.get(id);
  return `${boot} ${id} ${inode?.cached.size} ${inode?.changed}`;
}

/** Every file as a process sees it, by path, in the order of the paths. */
export function filesOf({ inodes }: DiskState): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  const collect = (id: number, path: string): void => {
    const inode = inodes.get(id);
    if (inode?.kind === 'file') found.set(path, visible(inode.cached));
    else if (inode !== undefined)
      for (const name of sortedNames(inode.cachedNames)) collect(inode.cachedNames.get(name) ?? ROOT_INODE, `${path}/${name}`);
  };
  collect(ROOT_INODE, '');
  return found;
}

/** The state with what is pending of the file of that path taken out: it is lost. */
export function withoutPendingOf(state: DiskState, path: string): DiskState {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const inode = findInode(state, path);
  const pending = state.pending.filter(
    (change) => change.inode !== inode && !(change.kind === 'name' && Object.keys(change.names).every((changed) => changed === name)),
  );
  return pending.length === state.pending.length ? state : { ...state, pending };
}

function findInode(state: DiskState, path: string): number | undefined {
  let inode: number | undefined = ROOT_INODE;
  for (const name of path.split('/')) if (name !== '' && inode !== undefined) inode = state.inodes.get(inode)?.cachedNames.get(name);
  return inode;
}

/** Small numbers for contents, the same for the same bytes: a text of them is short. */
const numbersOfContents = new WeakMap<Content | Buffer, number>();
const numbersByHash = new Map<string, number>();

function numberOf(content: Content | Buffer): number {
  let known = numbersOfContents.get(content);
  if (known === undefined) {
    const key = hash('sha1', 'size' in content ? visible(content) : content, 'base64');
    known = numbersByHash.get(key) ?? numbersByHash.size;
    numbersByHash.set(key, known);
    numbersOfContents.set(content, known);
  }
  return known;
}

/**
 * The topics of a data directory that a start takes for unchanged since they were synced, whole or in part. Nothing else that stands in the file
 * counts for anything.
 */
function syncedTopics(state: DiskState, rootDir: number): string {
  const child = (directory: number | undefined, name: string): number | undefined =>
    directory === undefined ? undefined : state.inodes.get(directory)?.cachedNames.get(name);
  const file = state.inodes.get(child(rootDir, SYNCED_FILE_NAME) ?? -1);
  if (file === undefined) return '';
  let found = '';
  for (const line of visible(file.cached).toString('latin1').split('\n')) {
    const [topic = '', ...recorded] = line.split(' ');
    const dir = child(rootDir, topic);
    const checkpoints = child(dir, 'checkpoints');
    if (dir === undefined || checkpoints === undefined) continue;
    const names = [...(state.inodes.get(dir)?.cachedNames.keys() ?? [])];
    const baseOffsets = names.flatMap((name) => parseSegmentName(name)?.baseOffset ?? []);
    const lastBaseOffset = baseOffsets.length === 0 ? undefined : Math.max(...baseOffsets);
    const files = names.filter((name) => lastBaseOffset !== undefined && parseSegmentName(name)?.baseOffset === lastBaseOffset);
    const stamps = files.sort((a) => (a.endsWith('.mmm') ? -1 : 1)).map((name) => stampOf(state, child(dir, name) ?? -1));
    const now = syncedLine(
      [dir, checkpoints].map((id) => stampOf(state, id)),
      lastBaseOffset,
      stamps,
    ).split(' ');
    found += ` ${topic} ${recorded.map((part, index) => part === now[index]).join()}`;
  }
  return found;
}

/**
 * The same for two states that no process can tell apart, whatever becomes of what is pending; within this process.
 * @param lock a name that does not count, whatever stands under it
 */
export function fingerprint(state: DiskState, lock: string): string {
  const ignored: ReadonlySet<string> = new Set([lock, SYNCED_FILE_NAME]);
  let synced = '';
  // Inodes have the numbers in which a walk comes to them, so that the order in which they were made does not count.
  const numbers = new Map<number, number>();
  const numberOfInode = (id: number): number => {
    let number = numbers.get(id);
    if (number === undefined) numbers.set(id, (number = numbers.size));
    return number;
  };
  const treeText = (id: number, names: 'cachedNames' | 'durableNames', content: 'cached' | 'durable'): string => {
    const inode = state.inodes.get(id);
    if (inode === undefined) return '';
    if (inode.kind === 'file') return `${numberOfInode(id)}:${numberOf(inode[content])}`;
    let text = `${numberOfInode(id)}(`;
    for (const name of sortedNames(inode[names])) {
      if (name === SYNCED_FILE_NAME && names === 'cachedNames') synced += syncedTopics(state, id);
      if (!ignored.has(name)) text += `${name} ${treeText(inode[names].get(name) ?? ROOT_INODE, names, content)} `;
    }
    return `${text})`;
  };
  let text = `${state.capacityBytes} ${treeText(ROOT_INODE, 'cachedNames', 'cached')}`;
  text += synced;
  if (!isOneWithItsCache(state)) text += `\n${treeText(ROOT_INODE, 'durableNames', 'durable')}`;
  for (const change of state.pending) {
    const number = numbers.get(change.inode);
    if (number === undefined) continue;
    if (change.kind === 'size') text += `\nsize ${number} ${change.size}`;
    else if (change.kind === 'data') text += `\ndata ${number} ${change.sector} ${change.from} ${change.to} ${numberOf(change.bytes)}`;
    else {
      for (const [name, child] of Object.entries(change.names)) {
        if (!ignored.has(name)) text += `\nname ${number} ${name} ${child === undefined ? '' : numbers.get(child)}`;
      }
    }
  }
  return hash('sha1', text, 'base64');
}

function isOneWithItsCache({ inodes }: DiskState): boolean {
  for (const { cached, durable, cachedNames, durableNames } of inodes.values()) {
    if (cached !== durable || cachedNames !== durableNames) return false;
  }
  return true;
}

const namesInOrder = new WeakMap<ReadonlyMap<string, number>, readonly string[]>();

function sortedNames(names: ReadonlyMap<string, number>): readonly string[] {
  let sorted = namesInOrder.get(names);
  if (sorted === undefined) namesInOrder.set(names, (sorted = [...names.keys()].sort()));
  return sorted;
}
