import { ErrorCode, isDeadLetterTopic, MmmqError } from '../../src/core/index.js';
import { crashImages, type CrashImageOptions } from './crash-images.js';
import { SYNCED_FILE_NAME } from '../../src/storage/index.js';
import { fingerprint, hasForgotten, powerCut, withoutPendingOf, type DiskState } from './disk-state.js';
import { Oracle, Violation } from './oracle.js';
import { below, seededRandom, type Random } from './seeded-random.js';
import { ROOT_DIR, SimulatedBroker, SimulatedClock } from './simulated-broker.js';
import { faultsAt, SimulatedDisk, type Call, type Fault, type Operation } from './simulated-disk.js';
import { resend, useOn, type Workload } from './workloads.js';

/*
 * What is tried, of each workload:
 *
 * - Its crashes: at every call that changes something, the process dies, or the power fails and leaves each of the images that `crashImages`
 *   names. The broker is started on what is left, the oracle looks, it is started again, used on (with and without a new topic), and looked
 *   at once more behind one more power cut. The start itself is crashed at every call in the same way, and the start after that, and so on.
 * - The errors of its starts: every call of every kind of start after these crashes fails with every error, once, three times and for ever; what
 *   that leaves is an image like any other, as are all those of a power cut. A start that succeeds all the same has promised what it shows.
 * - Its errors: every call of the workload fails with every error, once, three times and for ever, until somebody mends the disk. Everything
 *   must go on by itself. What is left at the end, and at some steps on the way, is crashed too, more of them behind one EIO of each kind of write
 *   and sync: of the pairs of an error and a crash there are too many for all.
 *
 * Most starts come behind a process that was killed, or behind a power cut. Those behind one that ended in good order have a workload of their own,
 * and follow every recovery; the end itself is crashed too.
 *
 * Nothing is tried twice: two images are one where no process can tell the disks apart (`fingerprint`) and the same was promised before; the
 * broker is used on once for each different disk that a start made of them; a start is of a new kind where it makes a call on a kind of file of a
 * topic that none before it made, or makes them in another order. The lock file counts for nothing there: what it holds means nothing to a
 * later process. What the file of synced topics holds counts as far as a start believes it, and is nothing behind a power cut.
 */

export interface SweepOptions extends CrashImageOptions {
  readonly seed: number;
  /** Which part of the errors is tried, 0 to 1, chosen by the seed; one of each kind is tried in any case. */
  readonly errorShare: number;
  readonly errorInStartShare: number;
  /** Which part of the steps of starts is crashed. */
  readonly stepInStartShare: number;
  /** How many steps of a run with an error are crashed. */
  readonly crashesPerError: number;
  /** Uses on both with and without a new topic; otherwise with one or the other. */
  readonly isUsedOnBothWays: boolean;
  /** Ends at the first violation. */
  readonly isBailing: boolean;
}

export interface SweepReport {
  /** Different ones that were recovered and checked. */
  images: number;
  /** Those that were equal to one that had been checked. */
  repeats: number;
  /** Runs and starts with an error. */
  errors: number;
  /** Each says what was broken, and where. */
  readonly violations: string[];
}

/** A step of a run, as a crash at this moment finds it. */
interface CrashPoint {
  readonly at: string;
  readonly state: DiskState;
  readonly oracle: Oracle;
}

/** So many waits are enough for whatever can come to an end. */
const MAX_WAITS = 400;
/** So many waits with a fault that lasts, before it is over. */
const WAITS_IN_FAULT = 12;
/** So many crashes behind an error that loses something. */
const THOROUGH_CRASHES = 6;
const MAX_COMBINATIONS_IN_STARTS = 4;
/** More of them say nothing new. */
const MAX_VIOLATIONS = 10;
const LOCK_FILE_NAME = '.mmmq.lock';
const LOCK_FILE = `${ROOT_DIR}/${LOCK_FILE_NAME}`;
const SYNCED_FILE = `${ROOT_DIR}/${SYNCED_FILE_NAME}`;

export class Sweep {
  readonly report: SweepReport = { images: 0, repeats: 0, errors: 0, violations: [] };
  private readonly random: Random;
  /** Another one for each workload: where they begin alike, chance does not have to. */
  private readonly diskSeed: number;
  private readonly recovered = new Set<string>();
  private readonly usedOn = new Set<string>();
  private readonly pointsTaken = new Set<string>();
  private readonly imagesMade = new Set<string>();
  private readonly oracleKeys = new WeakMap<Oracle, string>();
  private readonly kindsOfStart = new Set<string>();
  private readonly startsOfAllKinds: (CrashPoint & { readonly calls: readonly Call[] })[] = [];
  private runs = 0;

  constructor(
    private readonly workload: Workload,
    private readonly options: SweepOptions,
  ) {
    this.random = seededRandom(options.seed);
    this.diskSeed = options.seed + Buffer.from(workload.name).reduce((sum, byte) => sum + byte, 0);
  }

  /** Whether it gave up because enough was found. */
  get isCutShort(): boolean {
    return this.report.violations.length >= (this.options.isBailing ? 1 : MAX_VIOLATIONS);
  }

  /** Every step crashed, and every step of every recovery. */
  async crashes(): Promise<void> {
    for (const point of await this.crashPointsOfWorkload()) await this.crash(point);
  }

  /** Every call failed, in every kind of start that {@link crashes} has met. */
  async errorsInStarts(): Promise<void> {
    const starts = this.startsOfAllKinds.slice();
    const faults = starts.flatMap((point) => faultsOf(point.calls).map((fault) => ({ ...fault, point })));
    for (const { candidate } of this.chosen(faults, this.options.errorInStartShare)) await this.failStart(candidate.point, candidate.fault);
  }

  /** Every call of the workload failed. */
  async errors(): Promise<void> {
    for (const { candidate, isOfItsKind } of this.chosen(faultsOf(await this.callsOfWorkload()), this.options.errorShare)) {
      await this.fail(candidate.fault, isOfItsKind && candidate.isLosing);
    }
  }

  /** A share of them by chance, and one of each kind in any case. */
  private *chosen<T extends { readonly kind: string }>(
    candidates: readonly T[],
    share: number,
  ): Generator<{ readonly candidate: T; readonly isOfItsKind: boolean }> {
    const ofKind = new Map<string, T[]>();
    for (const candidate of candidates) {
      const others = ofKind.get(candidate.kind);
      if (others === undefined) ofKind.set(candidate.kind, [candidate]);
      else others.push(candidate);
    }
    const inAnyCase = new Set([...ofKind.values()].map((all) => all[below(this.random, all.length)]));
    for (const candidate of candidates) {
      if (this.isCutShort) return;
      const isOfItsKind = inAnyCase.has(candidate);
      if (this.isChosen(share) || isOfItsKind) yield { candidate, isOfItsKind };
    }
  }

  /** Starts have many steps that leave much the same. */
  private get inStarts(): CrashImageOptions {
    return { ...this.options, combinationsUpTo: Math.min(this.options.combinationsUpTo, MAX_COMBINATIONS_IN_STARTS), randomCount: 0 };
  }

  private isChosen(share: number): boolean {
    if (this.isCutShort) return false;
    return share >= 1 || this.random() < share;
  }

  private broker(disk: SimulatedDisk, oracle: Oracle, clock = new SimulatedClock()): SimulatedBroker {
    return new SimulatedBroker(disk, oracle, clock, this.workload);
  }

  /** Its calls overlap in the same way each time: a run can be gone through again. */
  private newDisk(state?: DiskState): SimulatedDisk {
    return state === undefined ? SimulatedDisk.empty(this.diskSeed) : SimulatedDisk.of(state, this.diskSeed);
  }

  private async crashPointsOfWorkload(): Promise<CrashPoint[]> {
    const points: CrashPoint[] = [];
    await this.guard('the workload', async () => {
      const disk = this.newDisk();
      const processes = this.processes(disk);
      const { oracle } = processes;
      disk.onStep = ({ call, operation, path }) => {
        processes.broker.look();
        const at = `before call ${call} (${operation} ${path}) took effect`;
        points.push({ at, state: disk.state, oracle: oracle.clone() });
      };
      await this.runWorkload(processes);
      processes.broker.assertNothingBroken();
      points.push({ at: 'at the end', state: disk.state, oracle: oracle.clone() });
    });
    return points;
  }

  private async callsOfWorkload(): Promise<readonly Call[]> {
    const disk = this.newDisk();
    await this.runWorkload(this.processes(disk));
    return disk.calls;
  }

  private async runWorkload(processes: Processes): Promise<void> {
    await this.finish(processes.clock, this.wholeWorkload(processes));
    await this.rest(processes.broker);
  }

  private async wholeWorkload(processes: Processes): Promise<void> {
    await processes.broker.open();
    await this.workload.run(processes.broker);
    if (this.workload.runAgain === undefined) return;
    await processes.broker.close();
    processes.broker.assertNothingBroken();
    processes.begin();
    await processes.broker.open();
    await this.workload.runAgain(processes.broker);
  }

  private processes(disk: SimulatedDisk, oracle = new Oracle(ROOT_DIR)): Processes {
    return new Processes((clock) => this.broker(disk, oracle, clock), oracle);
  }

  private async finish(clock: SimulatedClock, work: Promise<unknown>): Promise<void> {
    if ((await clock.run(work, MAX_WAITS)) === 'waiting') throw new Violation('it hangs');
  }

  /** Waits until every worker has delivered everything. */
  private async rest(broker: SimulatedBroker): Promise<void> {
    for (let waits = 0; !broker.isAtRest; waits += 1) {
      broker.assertNothingBroken();
      if (waits > MAX_WAITS) throw new Violation(`the dispatchers do not come to rest: ${broker.log.slice(-3).join(' | ')}`);
      await broker.clock.run(Promise.resolve(), 0);
      if (!broker.isAtRest) broker.clock.advance();
    }
  }

  /** The process dies and the power stays: the next one finds all that was written, durable or not. Or the power goes too. */
  private async crash(point: CrashPoint): Promise<void> {
    const left = [point];
    // Each recovery has points of its own; as recoveries make a disk simpler, there is soon none that was not there before.
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { at, state, oracle } = next;
      const options = next === point ? this.options : this.inStarts;
      if (this.isCutShort || !this.isNew(this.pointsTaken, next)) continue;
      if (next !== point && !this.isChosen(this.options.stepInStartShare)) continue;
      left.push(...(await this.recover({ at: `${at}, killed`, state, oracle })));
      for (const image of crashImages(withoutOwnPending(state), this.random, options, this.isNewImage(oracle))) {
        left.push(...(await this.recover({ at: `${at}, image: ${image.name}`, state: image.state, oracle })));
      }
    }
  }

  /**
   * Starts on what a crash left, asks the oracle, starts again, uses the broker on, and asks again after one more power cut.
   * @returns the steps of the first start
   */
  private async recover(point: CrashPoint): Promise<CrashPoint[]> {
    const steps: CrashPoint[] = [];
    if (this.isCutShort) return steps;
    if (!this.isNew(this.recovered, point)) {
      this.report.repeats += 1;
      return steps;
    }
    this.report.images += 1;
    await this.guard(point.at, async () => {
      const oracle = point.oracle.clone();
      const disk = this.newDisk(point.state);
      const broker = this.broker(disk, oracle);
      disk.onStep = ({ call, operation, path }) => {
        const at = `${point.at}; in the start, before call ${call} (${operation} ${path}) took effect`;
        steps.push({ at, state: disk.state, oracle: point.oracle });
      };
      const served = await this.start(broker, disk);
      disk.onStep = undefined;
      this.rememberKind(disk.calls, point);
      await this.look(broker, disk);
      // What is shown from here on must survive a power cut that leaves nothing that is not synced at this moment.
      if (isNotAllDurable(served)) await this.lookAfterPowerCut(served, oracle.clone());
      const { state } = disk;
      if (!this.isNew(this.usedOn, { ...point, state })) return;
      disk.onStep = ({ call, operation, path }) => {
        const at = `${point.at}; in the end that follows the start, before call ${call} (${operation} ${path}) took effect`;
        steps.push({ at, state: disk.state, oracle: point.oracle });
      };
      await this.finish(broker.clock, broker.close());
      disk.onStep = undefined;
      this.runs += 1;
      for (const withNewTopic of this.options.isUsedOnBothWays ? [false, true] : [this.runs % 2 === 0]) {
        await this.startAgainAndUseOn(this.newDisk(disk.state), oracle.clone(), withNewTopic);
      }
    });
    return steps;
  }

  private async startAgainAndUseOn(disk: SimulatedDisk, oracle: Oracle, withNewTopic: boolean): Promise<void> {
    const files = withoutOwnFiles(disk);
    const broker = this.broker(disk, oracle);
    const served = await this.start(broker, disk);
    if (isNotAllDurable(served)) await this.lookAfterPowerCut(served, oracle.clone());
    if (!sameFiles(files, withoutOwnFiles(disk))) throw new Violation('a second recovery changes files');
    disk.limitRoom(Number.POSITIVE_INFINITY);
    await this.useOn(broker, disk, withNewTopic);
    await this.lookAfterPowerCut(disk.state, oracle);
  }

  /** A start is remembered where it does something with one of its topics, or in an order, that none before it did. */
  private rememberKind(calls: readonly Call[], point: CrashPoint): void {
    const byTopic = new Map<string, Set<string>>();
    for (const { operation, path } of calls) {
      const [topic = '', ...rest] = path.slice(ROOT_DIR.length + 1).split('/');
      const isOfTopic = path.startsWith(`${ROOT_DIR}/`) && !topic.startsWith('.');
      const key = isOfTopic ? topic : '';
      const done = byTopic.get(key) ?? new Set();
      byTopic.set(key, done.add(`${operation} ${isOfTopic ? rest.join('/').replace(/\d+/, '') : path}`));
    }
    const kinds = [...byTopic.values()].map((done) => [...done].join()).filter((kind) => !this.kindsOfStart.has(kind));
    for (const kind of kinds) this.kindsOfStart.add(kind);
    if (kinds.length > 0) this.startsOfAllKinds.push({ ...point, calls });
  }

  /** Most images of a point are those of the one before it: they are not made again. */
  private isNewImage(oracle: Oracle): (image: string) => boolean {
    const oracleKey = this.oracleKeyOf(oracle);
    return (image) => {
      const key = `${oracleKey} ${image}`;
      const isNew = !this.imagesMade.has(key);
      if (isNew) this.imagesMade.add(key);
      else this.report.repeats += 1;
      return isNew;
    };
  }

  private oracleKeyOf(oracle: Oracle): string {
    let key = this.oracleKeys.get(oracle);
    if (key === undefined) this.oracleKeys.set(oracle, (key = oracle.fingerprint()));
    return key;
  }

  private isNew(known: Set<string>, { state, oracle }: CrashPoint): boolean {
    const key = `${this.oracleKeyOf(oracle)} ${fingerprint(state, LOCK_FILE_NAME)}`;
    if (known.has(key)) return false;
    known.add(key);
    return true;
  }

  /** @returns the disk at the moment at which the broker begins to serve */
  private async start(broker: SimulatedBroker, disk: SimulatedDisk): Promise<DiskState> {
    const before = disk.state;
    let served = before;
    try {
      await this.finish(
        broker.clock,
        broker.open().then(() => (served = disk.state)),
      );
      return served;
    } catch (error) {
      const isUnchanged = sameFiles(withoutOwnFiles(this.newDisk(before)), withoutOwnFiles(disk));
      throw new Violation(`it does not start${isUnchanged ? '' : ' and has changed files'}: ${String(error)}`);
    }
  }

  private async look(broker: SimulatedBroker, disk: SimulatedDisk): Promise<void> {
    broker.assertNothingBroken();
    broker.oracle.checkLogs(await broker.readAll());
    broker.oracle.checkFiles(disk.files(), disk.isFull);
  }

  private async useOn(broker: SimulatedBroker, disk: SimulatedDisk, withNewTopic: boolean): Promise<void> {
    await this.comeBack(broker);
    this.runs += 1;
    broker.dispatch();
    await this.finish(broker.clock, useOn(broker, this.runs, withNewTopic));
    if (this.workload.hasIds) await this.finish(broker.clock, resend(broker));
    await this.rest(broker);
    const problems = await broker.engine.problems();
    if (problems.length > 0) throw new Violation(`all is well again, and yet: ${problems.map(({ reason }) => reason).join()}`);
    broker.oracle.checkAtRest(this.workload.dispatchers);
    await this.look(broker, disk);
  }

  private async lookAfterPowerCut(state: DiskState, oracle: Oracle): Promise<void> {
    const after = this.newDisk(powerCut(state, () => 'lost'));
    const broker = this.broker(after, oracle);
    await this.start(broker, after);
    await this.look(broker, after);
  }

  /**
   * One fault in a run of the workload: nothing false is promised meanwhile, and when it is over everything goes on by itself.
   * @param isThorough with more crashes behind it, each with all images
   */
  private async fail(fault: Fault, isThorough: boolean): Promise<void> {
    const at = `call ${fault.call} fails with ${fault.error} ${fault.times} times`;
    this.report.errors += 1;
    const steps: CrashPoint[] = [];
    await this.guard(at, async () => {
      const oracle = new Oracle(ROOT_DIR);
      let disk = this.newDisk();
      disk.fail(fault);
      const processes = this.processes(disk, oracle);
      let stepsSinceStrike = 0;
      disk.onStep = ({ call, operation, path }) => {
        processes.broker.look();
        if (!disk.hasStruck) return;
        stepsSinceStrike += 1;
        // The first ones say most, and any other may.
        const most = isThorough ? THOROUGH_CRASHES : this.options.crashesPerError;
        if (steps.length < most && this.random() < (1 + most) / stepsSinceStrike) {
          steps.push({
            at: `${at}, then before call ${call} (${operation} ${path}) took effect`,
            state: disk.state,
            oracle: oracle.clone(),
          });
        }
      };
      const work = this.wholeWorkload(processes);
      try {
        if ((await processes.clock.run(work, WAITS_IN_FAULT)) === 'waiting') {
          disk.heal();
          await this.finish(processes.clock, work);
        }
        disk.heal();
      } catch (error) {
        // A start that the disk refuses: it says so and calls nothing corrupt, and the next one does it.
        this.assertNoCorruption(error);
        disk = this.newDisk(disk.state);
        processes.broker = this.broker(disk, oracle, processes.clock);
        await this.start(processes.broker, disk);
      }
      disk.limitRoom(Number.POSITIVE_INFINITY);
      // The making of a topic syncs what may have been forgotten.
      await this.useOn(processes.broker, disk, !isThorough && fault.call % 2 === 0);
      steps.push({ at: `${at}, at the end`, state: disk.state, oracle: oracle.clone() });
    });
    for (const step of steps) {
      const images = [...crashImages(withoutOwnPending(step.state), this.random, this.inStarts)];
      const one = below(this.random, images.length);
      await this.recover({ ...step, at: `${step.at}, killed` });
      for (const image of isThorough ? images : images.slice(one, one + 1)) {
        await this.recover({ ...step, at: `${step.at}, image: ${image.name}`, state: image.state });
      }
    }
  }

  /** A start that fails calls nothing corrupt, and the next one finds what the one before left: in the cache, or on the disk after a power cut. */
  private async failStart(point: CrashPoint, fault: Fault): Promise<void> {
    const at = `${point.at}; in the start, call ${fault.call} fails with ${fault.error} ${fault.times} times`;
    this.report.errors += 1;
    const disk = this.newDisk(point.state);
    const oracle = point.oracle.clone();
    await this.guard(at, async () => {
      disk.fail(fault);
      const broker = this.broker(disk, oracle);
      try {
        await this.finish(broker.clock, broker.open());
      } catch (error) {
        this.assertNoCorruption(error);
        return;
      }
      disk.heal();
      oracle.checkLogs(await broker.readAll());
      await this.finish(broker.clock, broker.close());
    });
    const { state } = disk;
    await this.recover({ at: `${at}, then started again`, state, oracle });
    for (const image of crashImages(withoutOwnPending(state), this.random, this.inStarts, this.isNewImage(oracle))) {
      await this.recover({ at: `${at}, then a power cut, image: ${image.name}`, state: image.state, oracle });
    }
  }

  private assertNoCorruption(error: unknown): void {
    if (!(error instanceof MmmqError)) throw error;
    if (error.code === ErrorCode.CORRUPT) throw new Violation(`an error of the disk is taken for corruption: ${error.message}`);
  }

  /** Every topic takes messages again, without a restart and without anybody's help. */
  private async comeBack(broker: SimulatedBroker): Promise<void> {
    for (const topic of broker.topics.filter((name) => !isDeadLetterTopic(name))) {
      for (let tries = 0; ; tries += 1) {
        this.runs += 1;
        const publishing = broker.publish({ topic, content: { run: this.runs, number: 0 } });
        await this.finish(broker.clock, publishing);
        if (await publishing) break;
        if (tries > MAX_WAITS) throw new Violation(`${topic} does not come back: ${broker.log.slice(-3).join(' | ')}`);
        broker.clock.advance();
      }
    }
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

/** The processes of a workload, one after the other, in one time. */
class Processes {
  readonly clock = new SimulatedClock();
  broker: SimulatedBroker;

  constructor(
    private readonly newBroker: (clock: SimulatedClock) => SimulatedBroker,
    readonly oracle: Oracle,
  ) {
    this.broker = newBroker(this.clock);
  }

  begin(): void {
    this.broker = this.newBroker(this.clock);
  }
}

interface PossibleFault {
  readonly fault: Fault;
  /** The same where the same operation on the same kind of file of some topic fails in the same way, at the same point of its work. */
  readonly kind: string;
  /** Something that was to come to the disk may be lost: a crash soon after it tells whether that was understood. */
  readonly isLosing: boolean;
}

const LOSING_OPERATIONS: ReadonlySet<Operation> = new Set(['write', 'truncate', 'sync', 'syncDirectory']);

/** Every error of every call. */
function faultsOf(calls: readonly Call[]): PossibleFault[] {
  return calls.flatMap(({ operation, path }, call) => {
    const [topic = '', ...rest] = path.slice(ROOT_DIR.length + 1).split('/');
    const isOfTopic = path.startsWith(`${ROOT_DIR}/`) && !topic.startsWith('.');
    const file = isOfTopic ? `${isDeadLetterTopic(topic) ? 'dead letters, ' : ''}${rest.join('/')}` : path;
    const point = operation === 'syncDirectory' ? `after ${calls[call - 1]?.operation ?? 'nothing'}` : '';
    return faultsAt(call, operation).map((fault) => {
      // Once: what succeeds behind it may hide it.
      const isLosing = LOSING_OPERATIONS.has(operation) && fault.error === 'EIO' && fault.times === 1;
      return { fault, isLosing, kind: `${operation} ${file.replace(/\d{19}/, '')} ${fault.error}${isLosing ? ' once' : ''} ${point}` };
    });
  });
}

/** What is pending of the files that mean nothing behind a power cut is not worth an image. */
function withoutOwnPending(state: DiskState): DiskState {
  return withoutPendingOf(withoutPendingOf(state, LOCK_FILE), SYNCED_FILE);
}

/** Whether a process sees what a power cut may take away. */
function isNotAllDurable(state: DiskState): boolean {
  return withoutOwnPending(state).pending.length > 0 || hasForgotten(state);
}

function withoutOwnFiles(disk: SimulatedDisk): Map<string, Buffer> {
  const files = disk.files();
  files.delete(LOCK_FILE);
  files.delete(SYNCED_FILE);
  return files;
}

function sameFiles(a: ReadonlyMap<string, Buffer>, b: ReadonlyMap<string, Buffer>): boolean {
  return a.size === b.size && [...a].every(([path, bytes]) => b.get(path)?.equals(bytes) === true);
}
