import { ErrorCode, MmmqError } from '../../src/core/index.js';
import { crashImages, type CrashImageOptions } from './crash-images.js';
import { fingerprint, powerCut, withoutPendingOf, type DiskState } from './disk-state.js';
import { DiskQueueOracle, type DiskQueuePromises } from './disk-queue-oracle.js';
import { DiskQueueUser, QUEUE_DIR } from './disk-queue-user.js';
import type { DiskQueueWorkload } from './disk-queue-workloads.js';
import { Violation } from './oracle.js';
import { below, seededRandom, type Random } from './seeded-random.js';
import { faultsAt, SimulatedDisk, type Call, type Fault } from './simulated-disk.js';

/*
 * What is tried, of each workload:
 *
 * - Its crashes: at every call that changes something, the process dies, or the power fails and leaves each of the images that `crashImages`
 *   names. The queue is opened on what is left and read to its end, the oracle looks, and it is used on, closed and opened again. What was shown
 *   at the end of a start is also looked at behind one more power cut, and a start itself is crashed at every call in the same way.
 * - Its errors: every call fails with every error, once, three times and until somebody mends the disk. Then everything goes on by itself:
 *   what was acknowledged is given, what was refused is not, nothing is set aside. Steps on the way and the end are crashed too.
 *
 * Nothing is tried twice, as in sweep.ts. Other than there, a process is also started where another one's sync has failed and the machine has gone
 * on: what the kernel has forgotten and still shows is written once more.
 */

export interface DiskQueueSweepOptions extends CrashImageOptions {
  readonly seed: number;
  /** Which part of the steps of starts is crashed. */
  readonly startShare: number;
  /** Which part of the errors is tried; one of each kind of call and error is in any case. */
  readonly errorShare: number;
  /** How many steps of a run with an error are crashed. */
  readonly crashesPerError: number;
}

export interface DiskQueueSweepReport {
  images: number;
  repeats: number;
  errors: number;
  readonly violations: string[];
}

/** A disk as a crash finds it, and what was promised until then. */
interface CrashPoint {
  readonly at: string;
  readonly state: DiskState;
  readonly promises: DiskQueuePromises;
  /** The power has never failed. */
  readonly hasPower: boolean;
  /** The disk has never failed. */
  readonly isWell: boolean;
}

const LOCK_NAME = '.mmmq.lock';
const LOCK_FILE = `${QUEUE_DIR}/${LOCK_NAME}`;
const MAX_VIOLATIONS = 5;

export class DiskQueueSweep {
  readonly report: DiskQueueSweepReport = { images: 0, repeats: 0, errors: 0, violations: [] };
  private readonly random: Random;
  private readonly tried = new Set<string>();
  private readonly promised = new WeakMap<DiskQueuePromises, string>();

  constructor(
    private readonly workload: DiskQueueWorkload,
    private readonly options: DiskQueueSweepOptions,
  ) {
    this.random = seededRandom(options.seed);
  }

  async crashes(): Promise<void> {
    const points: CrashPoint[] = [];
    await this.guard('the workload', async () => {
      const { user, disk } = this.newUser();
      disk.onStep = ({ call, operation, path }) =>
        points.push(this.pointOf(user, disk, `before call ${call} (${operation} ${path}) took effect`));
      await this.work(user);
      points.push(this.pointOf(user, disk, 'at the end'));
    });
    for (const point of points) await this.crash(point, true);
  }

  async errors(): Promise<void> {
    const { user, disk } = this.newUser();
    await this.work(user);
    const kinds = new Map<string, Fault[]>();
    for (const { kind, fault } of faultsOf(disk.calls)) kinds.set(kind, [...(kinds.get(kind) ?? []), fault]);
    for (const faults of kinds.values()) {
      const one = below(this.random, faults.length);
      for (const [index, fault] of faults.entries()) {
        if (this.isCutShort) return;
        if (index === one || this.random() < this.options.errorShare) await this.fail(fault);
      }
    }
  }

  private get isCutShort(): boolean {
    return this.report.violations.length >= MAX_VIOLATIONS;
  }

  private newUser(
    state?: DiskState,
    oracle = new DiskQueueOracle(this.workload.syncEvery),
  ): { readonly user: DiskQueueUser; readonly disk: SimulatedDisk } {
    const { seed } = this.options;
    const disk = state === undefined ? SimulatedDisk.empty(seed) : SimulatedDisk.of(state, seed);
    return { disk, user: new DiskQueueUser(disk, oracle, this.workload) };
  }

  private async work(user: DiskQueueUser): Promise<void> {
    await user.open();
    await this.workload.run(user);
  }

  private pointOf(user: DiskQueueUser, disk: SimulatedDisk, at: string, isWell = true): CrashPoint {
    return { at, state: disk.state, promises: user.oracle.promises, hasPower: true, isWell };
  }

  /** The process dies, or the power goes. @param isInStartToo whether the starts behind it are crashed as well */
  private async crash(point: CrashPoint, isInStartToo: boolean): Promise<void> {
    const { at, state } = point;
    if (this.isCutShort || !this.isNew('point', point)) return;
    const steps: CrashPoint[] = [];
    steps.push(...(await this.recover({ ...point, at: `${at}, killed` })));
    for (const image of crashImages(withoutPendingOf(state, LOCK_FILE), this.random, this.options)) {
      if (this.isCutShort) return;
      steps.push(...(await this.recover({ ...point, at: `${at}, image: ${image.name}`, state: image.state, hasPower: false })));
    }
    if (!isInStartToo) return;
    for (const step of steps) if (this.random() < this.options.startShare) await this.crash(step, false);
  }

  /** @returns the steps of the start */
  private async recover(point: CrashPoint): Promise<CrashPoint[]> {
    const { at, state, isWell } = point;
    const steps: CrashPoint[] = [];
    if (!this.isNew('image', point)) {
      this.report.repeats += 1;
      return steps;
    }
    this.report.images += 1;
    await this.guard(at, async () => {
      const { user, disk } = this.newUser(state);
      disk.onStep = ({ call, operation, path }) =>
        steps.push({ ...point, state: disk.state, at: `${at}; in the start, before call ${call} (${operation} ${path}) took effect` });
      await user.open();
      disk.onStep = undefined;
      const shown = disk.state;
      await this.look(user, disk, point);
      if (isWell && !this.workload.damages && hasSetAside(disk))
        throw new Violation('a file is set aside, and no crash leaves what cannot be read');
      await this.useOn(user, disk);
      const { user: next, disk: nextDisk } = this.newUser(powerCut(shown, () => 'lost'));
      await next.open();
      await this.look(next, nextDisk, { ...point, hasPower: false });
    });
    return steps;
  }

  private isNew(what: string, { state, promises, hasPower, isWell }: CrashPoint): boolean {
    let promised = this.promised.get(promises);
    if (promised === undefined) this.promised.set(promises, (promised = JSON.stringify(promises)));
    const key = `${what} ${fingerprint(state, LOCK_NAME)} ${hasPower} ${isWell} ${promised}`;
    const isNew = !this.tried.has(key);
    this.tried.add(key);
    return isNew;
  }

  private async look(user: DiskQueueUser, disk: SimulatedDisk, { promises, hasPower, isWell }: CrashPoint): Promise<void> {
    const { depth } = user.queue;
    const read = await user.drain();
    new DiskQueueOracle(this.workload.syncEvery).check(promises, {
      read,
      depth,
      isKilled: hasPower,
      isWell,
      isSetAside: !this.workload.damages && hasSetAside(disk),
    });
  }

  /** It takes messages and gives them, and the next start finds what was left. */
  private async useOn(user: DiskQueueUser, disk: SimulatedDisk): Promise<void> {
    const texts = ['used on, first', 'used on, second'.padEnd(300, '.'), 'used on, third'.padEnd(300, '.')];
    for (const text of texts) await user.queue.put(Buffer.from(text));
    const taken = await user.queue.take();
    if (taken?.toString() !== texts[0]) throw new Violation(`${String(taken)} is given instead of ${texts[0]}`);
    await user.closeAndOpen();
    const read = await user.drain();
    if (read.join() !== texts.slice(1).join()) throw new Violation(`after a close and a start ${read.length} messages are read`);
    await user.letTimePass();
    await user.close();
    const names = [...disk.files().keys()].filter((path) => path !== LOCK_FILE && !path.endsWith('.bad'));
    if (names.length !== 2) throw new Violation(`everything was read, and there are ${names.join(', ')}`);
  }

  private async fail(fault: Fault): Promise<void> {
    const at = `call ${fault.call} fails with ${fault.error} ${fault.times} times`;
    this.report.errors += 1;
    const steps: CrashPoint[] = [];
    await this.guard(at, async () => {
      const { user, disk } = this.newUser(undefined, new DiskQueueOracle(this.workload.syncEvery, false));
      disk.fail(fault);
      let seen = 0;
      disk.onStep = ({ call, operation, path }) => {
        if (!disk.hasStruck) return;
        seen += 1;
        const step = this.pointOf(user, disk, `${at}, then before call ${call} (${operation} ${path}) took effect`, false);
        if (steps.length < this.options.crashesPerError) steps.push(step);
        else if (this.random() < this.options.crashesPerError / seen) steps[below(this.random, steps.length)] = step;
      };
      await this.workInFault(user);
      disk.heal();
      steps.push(this.pointOf(user, disk, `${at}, at the end`, false));
      disk.onStep = undefined;
      await this.comeBack(user, disk);
    });
    for (const step of steps) await this.crashOnce(step);
  }

  /** A start that the disk refuses calls nothing corrupt. */
  private async workInFault(user: DiskQueueUser): Promise<void> {
    try {
      await this.work(user);
    } catch (error) {
      if (!(error instanceof MmmqError) || error.code === ErrorCode.CORRUPT || error.code === ErrorCode.LOCKED) throw error;
    }
  }

  /** Without anybody's help, but for a start of another process where there was none. */
  private async comeBack(user: DiskQueueUser, disk: SimulatedDisk): Promise<void> {
    if (!user.isOpen) return this.startAgain(user.oracle, disk.state);
    const text = 'when the disk is well again';
    await user.letTimePass();
    await user.put(text);
    user.giveBackAll();
    const { promises, expected } = user.oracle;
    const { depth } = user.queue;
    const read = await user.drain();
    if (read.at(-1) !== text) throw new Violation('a message is refused');
    if (hasSetAside(disk)) return;
    // A start finds what could not be taken back, and what was removed and could not be written down.
    if (user.starts > 1) user.oracle.check(promises, { read, depth, isKilled: true, isWell: false });
    else if (namesOf(read) !== namesOf(expected)) throw new Violation(`${namesOf(read)} is read instead of ${namesOf(expected)}`);
    await this.useOn(user, disk);
  }

  private async startAgain(oracle: DiskQueueOracle, state: DiskState): Promise<void> {
    const { user, disk } = this.newUser(state);
    await user.open();
    const { depth } = user.queue;
    const read = await user.drain();
    oracle.check(oracle.promises, { read, depth, isKilled: true, isWell: false, isSetAside: hasSetAside(disk) });
    await this.useOn(user, disk);
  }

  private async crashOnce(point: CrashPoint): Promise<void> {
    const images = [...crashImages(withoutPendingOf(point.state, LOCK_FILE), this.random, this.options)];
    const image = images[below(this.random, images.length)];
    await this.recover({ ...point, at: `${point.at}, killed` });
    if (image !== undefined) await this.recover({ ...point, at: `${point.at}, image: ${image.name}`, state: image.state, hasPower: false });
  }

  private async guard(at: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const what = error instanceof Violation ? error.message : error instanceof Error ? String(error.stack) : String(error);
      this.report.violations.push(`${this.workload.name}, ${at}: ${what}`);
    }
  }
}

interface PossibleFault {
  /** The same where the same operation on the same kind of file fails with the same error. */
  readonly kind: string;
  readonly fault: Fault;
}

/** The lock is the kernel's: closing its file lets go, whatever the disk says. */
function faultsOf(calls: readonly Call[]): PossibleFault[] {
  return calls.flatMap(({ operation, path }, call) =>
    faultsAt(call, operation)
      .filter(({ times }) => operation !== 'close' || (path !== LOCK_FILE && times === 1))
      .map((fault) => ({ kind: `${operation} ${path.replace(/\d{6}/, '')} ${fault.error}`, fault })),
  );
}

function namesOf(texts: readonly string[]): string {
  return texts.map((text) => text.slice(0, 'message 10'.length)).join();
}

function hasSetAside(disk: SimulatedDisk): boolean {
  return [...disk.files().keys()].some((path) => path.endsWith('.bad'));
}
