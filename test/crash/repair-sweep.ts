import { crc32c } from '@node-rs/crc32';
import { systemClock } from '../../src/core/index.js';
import { mmmq, type CommandEnd } from '../support/recording-terminal.js';
import { crashImages } from './crash-images.js';
import { filesOf, fingerprint, powerCut, withFile, withoutPendingOf, type DiskState } from './disk-state.js';
import { Oracle, Violation } from './oracle.js';
import { below, seededRandom, type Random } from './seeded-random.js';
import { ROOT_DIR, SimulatedBroker, SimulatedClock } from './simulated-broker.js';
import { faultsAt, SimulatedDisk, type Call } from './simulated-disk.js';
import type { SweepReport } from './sweep.js';
import type { Workload } from './workloads.js';

/*
 * `mmmq repair --write` on what a workload left, damaged in each of the ways below, and on what a crash in the middle of the workload left:
 *
 * - No message that is whole is cut away. Where the repair says that all is well, a start succeeds, every message stands at its offset where its
 *   bytes and its position are there, and a second repair has nothing to do.
 * - The repair is crashed at every call that changes something, with every image that `crashImages` names, and every call of it gets every error.
 *   Where a byte of the data directory is changed by then, all copies aside are whole; and a second repair comes to the same files.
 */

export interface RepairSweepOptions {
  readonly seed: number;
  /** Which part of the damages is tried, 0 to 1; chosen by the seed. */
  readonly share: number;
  /** The same for the errors. */
  readonly errorShare: number;
  readonly isBailing: boolean;
}

/** A data directory that is to be repaired. */
interface Patient {
  readonly at: string;
  readonly state: DiskState;
  /** Its files, without the lock. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/** What there was before the damage: the messages by segment file, in their order. */
type Messages = ReadonlyMap<string, readonly { readonly position: number; readonly bytes: Buffer }[]>;

type Damage = readonly [what: string, bytes: (before: Buffer) => Buffer | undefined];

const ASIDE = `${ROOT_DIR}.repair-`;
const LOCK_FILE_NAME = '.mmmq.lock';
const LOCK_FILE = `${ROOT_DIR}/${LOCK_FILE_NAME}`;
const RUNS_AT_MS = 1_700_000_000_000;
const MAX_VIOLATIONS = 10;
const IMAGES = { combinationsUpTo: 4, randomCount: 2, isTornEverywhere: false };
const NOISE = Buffer.from('5b9f0e4c6d21aa37', 'hex');

const INDEX_DAMAGES: readonly Damage[] = [
  ['is gone', () => undefined],
  ['is empty', () => Buffer.alloc(0)],
  ['has lost its last record', (before) => before.subarray(0, before.length - 8)],
  ['has lost all records but one', (before) => before.subarray(0, 8)],
  ['ends in half a record', (before) => Buffer.concat([before, NOISE.subarray(0, 5)])],
  ['has a record too many', (before) => Buffer.concat([before, int64(100_000)])],
  ['ends in zeros', (before) => Buffer.concat([before, Buffer.alloc(24)])],
  ['has a wrong record in the middle', (before) => overwritten(before, Math.floor(before.length / 16) * 8, int64(3))],
  ['has a wrong last record', (before) => overwritten(before, before.length - 8, int64(1))],
  ['does not begin at 0', (before) => overwritten(before, 0, int64(9))],
];

const SEGMENT_DAMAGES: readonly Damage[] = [
  ['is gone', () => undefined],
  ['is empty', () => Buffer.alloc(0)],
  ['has lost its last bytes', (before) => before.subarray(0, before.length - 5)],
  ['has lost half', (before) => before.subarray(0, Math.floor(before.length / 2))],
  ['has noise behind it', (before) => Buffer.concat([before, NOISE])],
  ['has zeros behind it', (before) => Buffer.concat([before, Buffer.alloc(600)])],
  ['has a wrong first length', (before) => overwritten(before, 0, Buffer.from([0, 0, 0, 99]))],
  [
    'has a flipped bit in the middle',
    (before) => overwritten(before, before.length >> 1, Buffer.from([(before[before.length >> 1] ?? 0) ^ 4])),
  ],
  ['has a flipped bit in the last message', (before) => overwritten(before, before.length - 3, Buffer.from([(before.at(-3) ?? 0) ^ 1]))],
  ['is noise', (before) => Buffer.alloc(before.length, NOISE)],
];

const CHECKPOINT_DAMAGES: readonly Damage[] = [
  ['is empty', () => Buffer.alloc(0)],
  ['is too short', (before) => before.subarray(0, 3)],
  ['is too long', (before) => Buffer.concat([before, NOISE])],
  ['is beyond the end', () => int64(1_000)],
  ['is no offset', () => int64(-1)],
];

export class RepairSweep {
  readonly report: SweepReport = { images: 0, repeats: 0, errors: 0, violations: [] };
  private readonly random: Random;
  private readonly seen = new Set<string>();
  private messages: Messages = new Map();
  private runs = 0;

  constructor(
    private readonly workload: Workload,
    private readonly options: RepairSweepOptions,
  ) {
    this.random = seededRandom(options.seed);
  }

  /** Whether it gave up because enough was found. */
  get isCutShort(): boolean {
    return this.report.violations.length >= (this.options.isBailing ? 1 : MAX_VIOLATIONS);
  }

  async run(): Promise<void> {
    const states = await this.statesOfWorkload();
    const end = states.at(-1);
    if (end === undefined) return;
    const whole = powerCut(end, () => 'kept');
    this.messages = messagesOf(filesOf(whole));
    for (const [what, state] of damagesOf(whole, this.random))
      if (this.isChosen(this.options.share)) await this.sweep(patient(what, state));
    for (const [step, state] of states.entries()) {
      for (const { name, state: image } of crashImages(withoutPendingOf(state, LOCK_FILE), this.random, IMAGES)) {
        if (dataFiles(image).size > 0 && this.isChosen(this.options.share))
          await this.sweep(patient(`step ${step} of the workload, image: ${name}`, image));
      }
    }
  }

  private isChosen(share: number): boolean {
    return !this.isCutShort && this.random() < share;
  }

  private isNew(state: DiskState): boolean {
    const key = fingerprint(state, LOCK_FILE_NAME);
    if (this.seen.has(key)) {
      this.report.repeats += 1;
      return false;
    }
    this.seen.add(key);
    this.report.images += 1;
    return true;
  }

  private async statesOfWorkload(): Promise<DiskState[]> {
    const states: DiskState[] = [];
    const disk = SimulatedDisk.empty(this.options.seed);
    const broker = new SimulatedBroker(disk, new Oracle(ROOT_DIR), new SimulatedClock(), this.workload);
    disk.onStep = () => states.push(disk.state);
    const work = async (): Promise<void> => {
      await broker.open();
      await this.workload.run(broker);
    };
    await this.guard('the workload', async () => {
      await broker.clock.run(work(), Number.POSITIVE_INFINITY);
      while (!broker.isAtRest) {
        // A broker that breaks a promise may never come to rest.
        broker.assertNothingBroken();
        if (!broker.clock.advance()) await broker.clock.run(Promise.resolve(), 0);
      }
    });
    return [...states, disk.state];
  }

  private async sweep(subject: Patient): Promise<void> {
    if (!this.isNew(subject.state)) return;
    const steps: { readonly at: string; readonly state: DiskState }[] = [];
    let calls: readonly Call[] = [];
    let repaired: ReadonlyMap<string, Buffer> = new Map();
    let code = 0;
    await this.guard(subject.at, async () => {
      const disk = SimulatedDisk.of(subject.state, this.options.seed);
      disk.onStep = ({ call, operation, path }) =>
        steps.push({ at: `${subject.at}; in the repair, before call ${call} (${operation} ${path}) took effect`, state: disk.state });
      ({ code } = await this.repair(disk));
      disk.onStep = undefined;
      ({ calls } = disk);
      repaired = dataFiles(disk.state);
      this.assertCopied(subject, disk.state);
      this.assertNothingCut(subject, repaired);
      if (code === 0)
        await this.assertWell(
          subject,
          powerCut(disk.state, () => 'lost'),
        );
      steps.push({ at: `${subject.at}; behind the repair`, state: disk.state });
    });
    for (const { at, state } of steps) {
      const images = [{ name: 'killed', state }, ...crashImages(withoutPendingOf(state, LOCK_FILE), this.random, IMAGES)];
      for (const image of images) await this.repairAgain(`${at}, image: ${image.name}`, subject, image.state, { code, repaired });
    }
    for (const [call, { operation }] of calls.entries()) {
      for (const fault of faultsAt(call, operation)) {
        if (!this.isChosen(this.options.errorShare)) continue;
        this.report.errors += 1;
        const at = `${subject.at}; call ${call} of the repair fails with ${fault.error} ${fault.times} times`;
        const disk = SimulatedDisk.of(subject.state, this.options.seed);
        disk.fail(fault);
        await this.guard(at, async () => void (await this.repair(disk, true)));
        const { state } = disk;
        await this.repairAgain(at, subject, state, { code, repaired });
        await this.repairAgain(
          `${at}, then a power cut`,
          subject,
          powerCut(state, () => 'lost'),
          { code, repaired },
        );
      }
    }
  }

  /** A repair did not come to its end: nothing is changed of which there is no copy, and the next one does the rest. */
  private async repairAgain(
    at: string,
    subject: Patient,
    state: DiskState,
    wanted: { readonly code: number; readonly repaired: ReadonlyMap<string, Buffer> },
  ): Promise<void> {
    if (this.isCutShort || !this.isNew(state)) return;
    await this.guard(at, async () => {
      this.assertCopied(subject, state);
      const disk = SimulatedDisk.of(state, this.options.seed);
      await this.assertComesTo(disk, wanted);
      // What the first one did and did not sync the second one found done: a power cut may take it back, and then it is found to be done again.
      const afterPowerCut = powerCut(disk.state, () => 'lost');
      if (differences(dataFiles(afterPowerCut), wanted.repaired).length === 0) return;
      await this.assertComesTo(SimulatedDisk.of(afterPowerCut, this.options.seed), wanted);
    });
  }

  private async assertComesTo(
    disk: SimulatedDisk,
    wanted: { readonly code: number; readonly repaired: ReadonlyMap<string, Buffer> },
  ): Promise<void> {
    const { code, output, notes } = await this.repair(disk);
    if (code !== wanted.code) {
      throw new Violation(`the repair ends with ${code}, and with ${wanted.code} where nothing interrupts it: ${output}${notes}`);
    }
    const different = differences(dataFiles(disk.state), wanted.repaired);
    if (different.length > 0) throw new Violation(`the second repair comes to other files: ${different.join(', ')}`);
  }

  /** Each run has a time of its own: its copies go into a directory of that name. */
  private async repair(disk: SimulatedDisk, mayFail = false): Promise<CommandEnd> {
    this.runs += 1;
    const { now } = systemClock;
    systemClock.now = () => RUNS_AT_MS + this.runs;
    try {
      const end = await mmmq(['repair', ROOT_DIR, '--write'], disk);
      if (end.code === 2 && !mayFail) throw new Violation(`the repair could not do its work: ${end.notes}`);
      return end;
    } finally {
      systemClock.now = now;
    }
  }

  /** Every file that is not as it was has a copy aside that is. */
  private assertCopied({ files }: Patient, state: DiskState): void {
    const all = filesOf(state);
    for (const path of differences(files, dataFiles(state))) {
      const before = files.get(path);
      if (before === undefined) continue;
      const rest = path.slice(ROOT_DIR.length);
      const isCopied = [...all].some(([aside, bytes]) => aside.startsWith(ASIDE) && aside.endsWith(rest) && bytes.equals(before));
      if (!isCopied) throw new Violation(`${path} is changed and has no whole copy aside`);
    }
  }

  private assertNothingCut({ files }: Patient, repaired: ReadonlyMap<string, Buffer>): void {
    for (const [path, messages] of this.messages) {
      for (const { position, bytes } of messages) {
        if (standsAt(files.get(path), position, bytes) && !standsAt(repaired.get(path), position, bytes)) {
          throw new Violation(`the message at byte ${position} of ${path} was whole and is cut away`);
        }
      }
    }
  }

  /** A start succeeds and every message whose bytes are there stands at its offset; a second repair has nothing to do. */
  private async assertWell({ files }: Patient, state: DiskState): Promise<void> {
    const again = SimulatedDisk.of(state, this.options.seed);
    const { code, output } = await this.repair(again);
    if (code !== 0 || !output.includes('Nothing is to be repaired'))
      throw new Violation(`after a repair there is more to repair: ${output}`);
    if (differences(dataFiles(state), dataFiles(again.state)).length > 0) throw new Violation('a second repair changes files');

    const disk = SimulatedDisk.of(state, this.options.seed);
    const broker = new SimulatedBroker(disk, new Oracle(ROOT_DIR), new SimulatedClock(), this.workload);
    await broker.clock.run(broker.open(), 0);
    const logs = await broker.readAll();
    const repaired = dataFiles(state);
    for (const [path, messages] of this.messages) {
      const [, topic = '', first = ''] = /^.*\/([^/]+)\/(\d+)\.mmm$/.exec(path) ?? [];
      for (const [index, { position, bytes }] of messages.entries()) {
        const offset = Number(first) + index;
        const isThere = standsAt(files.get(path), position, bytes);
        const entry = logs.get(topic)?.[offset];
        const isRead = entry?.payload?.equals(bytes.subarray(8)) === true;
        // A start takes an older segment with a wrong position as it is, so there is nothing to be repaired; its message is skipped.
        const record = repaired.get(path.replace(/mmm$/, 'idx'))?.subarray(index * 8, index * 8 + 8);
        const isMisplaced = record?.length === 8 && !record.equals(int64(position));
        if (isThere && !isRead && !isMisplaced)
          throw new Violation(`the message at offset ${offset} of ${topic} is whole and cannot be read there`);
        if (!isThere && entry?.payload !== undefined)
          throw new Violation(`offset ${offset} of ${topic} was damaged and is ${entry.payload.toString()}`);
      }
    }
  }

  private async guard(at: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const what = error instanceof Violation ? error.message : error instanceof Error ? String(error.stack) : String(error);
      this.report.violations.push(`repair of ${this.workload.name}, ${at}: ${what}`);
    }
  }
}

/** Each damage of each file, and some pairs of them. */
function* damagesOf(state: DiskState, random: Random): Generator<[what: string, state: DiskState]> {
  yield ['nothing is wrong', state];
  const damaged = function* (from: DiskState): Generator<[string, DiskState]> {
    for (const [path, before] of dataFiles(from)) {
      const damages = path.endsWith('.idx') ? INDEX_DAMAGES : path.endsWith('.mmm') ? SEGMENT_DAMAGES : CHECKPOINT_DAMAGES;
      if (before.length === 0 || path.includes('/.')) continue;
      for (const [what, bytes] of damages) yield [`${path} ${what}`, withFile(from, path, bytes(before))];
    }
  };
  for (const [what, one] of damaged(state)) {
    yield [what, one];
    const more = [...damaged(one)];
    const [also, both] = more[below(random, more.length)] ?? ['', one];
    yield [`${what}, ${also}`, both];
  }
}

function patient(at: string, state: DiskState): Patient {
  return { at, state, files: dataFiles(state) };
}

/** The files of the data directory, without the lock. */
function dataFiles(state: DiskState): Map<string, Buffer> {
  const files = filesOf(state);
  for (const path of files.keys()) if (!path.startsWith(`${ROOT_DIR}/`) || path === LOCK_FILE) files.delete(path);
  return files;
}

function messagesOf(files: ReadonlyMap<string, Buffer>): Messages {
  const messages = new Map<string, { position: number; bytes: Buffer }[]>();
  for (const [path, file] of files) {
    if (!path.endsWith('.mmm')) continue;
    const found: { position: number; bytes: Buffer }[] = [];
    for (let position = 0; position + 8 < file.length;) {
      const bytes = file.subarray(position, position + 4 + file.readInt32BE(position));
      if (bytes.length <= 8 || crc32c(bytes.subarray(8)) !== bytes.readUInt32BE(4))
        throw new Error(`${path} is no segment file at ${position}`);
      found.push({ position, bytes });
      position += bytes.length;
    }
    messages.set(path, found);
  }
  return messages;
}

function standsAt(file: Buffer | undefined, position: number, bytes: Buffer): boolean {
  return file?.subarray(position, position + bytes.length).equals(bytes) === true;
}

/** The paths at which the two do not have the same. */
function differences(one: ReadonlyMap<string, Buffer>, other: ReadonlyMap<string, Buffer>): string[] {
  const paths = new Set([...one.keys(), ...other.keys()]);
  return [...paths].filter((path) => one.get(path)?.equals(other.get(path) ?? NOISE) !== true);
}

function overwritten(before: Buffer, position: number, bytes: Buffer): Buffer {
  const after = Buffer.from(before);
  bytes.copy(after, Math.max(0, position));
  return after;
}

function int64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}
