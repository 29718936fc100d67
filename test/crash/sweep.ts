import { ErrorCode, MmmqError } from '../../src/core/index.js';
import { Oracle, Violation } from './oracle.js';
import { below, seededRandom, type Random } from './seeded-random.js';
import { ROOT_DIR, SimulatedBroker, SimulatedClock } from './simulated-broker.js';
import { crashImages, powerCut, SimulatedDisk, type DiskState, type Fault, type Operation } from './simulated-disk.js';
import { resend, useOn, type Workload } from './workloads.js';

export interface SweepOptions {
  readonly seed: number;
  /** Which part of the images and of the errors is tried, 0 to 1; chosen by the seed. */
  readonly share: number;
  /** How many random images there are for each step. */
  readonly randomImages: number;
}

export interface SweepReport {
  images: number;
  errors: number;
  /** Each says what was broken, where, and the seed. */
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
/** An error of the disk in a step: once, several times, until somebody mends the disk. */
const ANY_ERROR = ['EIO', 'ENOSPC', 'EMFILE', 'EACCES', 'short'];
const STRIKES = [1, 3, Number.POSITIVE_INFINITY];
/** There is one death of the process for each step, and many images of a power cut; where only a part is tried, it is tried that much more often. */
const MORE_KILLS = 4;
/** The same for the error that matters most. */
const MORE_FAILED_SYNCS = 20;
/** More of them say nothing new. */
const MAX_VIOLATIONS = 10;
const LOCK_FILE = `${ROOT_DIR}/.mmmq.lock`;

/**
 * Runs workloads on the simulated disk and lets the power fail, or the process die, at every step; recovers, asks the oracle, uses the broker
 * on, and asks again. And gives every call every error.
 */
export class Sweep {
  readonly report: SweepReport = { images: 0, errors: 0, violations: [] };
  private readonly random: Random;
  private runs = 0;

  constructor(
    private readonly workload: Workload,
    private readonly options: SweepOptions,
  ) {
    this.random = seededRandom(options.seed);
  }

  /** Every step crashed. */
  async crashes(): Promise<void> {
    for (const point of await this.crashPointsOfWorkload()) {
      for (const image of crashImages(point.state, this.random, this.options.randomImages)) {
        if (this.isChosen()) await this.recover({ ...point, at: `${point.at}, image: ${image.name}`, state: image.state }, true);
      }
      // The process dies and the power stays: the next one finds all that was written, durable or not.
      if (this.isChosen(this.options.share * MORE_KILLS)) await this.recover({ ...point, at: `${point.at}, killed` }, true);
    }
  }

  /** Every call failed. */
  async errors(): Promise<void> {
    for (const [call, operation] of (await this.callsOfWorkload()).entries()) {
      for (const error of ANY_ERROR) {
        for (const times of STRIKES) {
          const more = operation === 'sync' && error === 'EIO' ? MORE_FAILED_SYNCS : 1;
          if (this.isChosen(this.options.share * more)) await this.fail({ call, error, times });
        }
      }
    }
  }

  /** Every call failed in starts on what crashes left. */
  async errorsInRecovery(): Promise<void> {
    for (const point of await this.crashPointsOfWorkload()) {
      const images = [...crashImages(point.state, this.random, 1)];
      const image = images[below(this.random, images.length)];
      if (image === undefined || !this.isChosen()) continue;
      const at = `${point.at}, image: ${image.name}`;
      await this.guard(at, async () => {
        const calls = await this.callsOfStart(image.state, point.oracle.clone());
        for (const call of calls.keys()) {
          const error = ANY_ERROR[below(this.random, ANY_ERROR.length)] ?? 'EIO';
          const times = STRIKES[below(this.random, STRIKES.length)] ?? 1;
          if (this.isChosen()) await this.failStart({ at, state: image.state, oracle: point.oracle }, { call, error, times });
        }
      });
    }
  }

  private isChosen(share = this.options.share): boolean {
    if (this.report.violations.length >= MAX_VIOLATIONS) return false;
    return share >= 1 || this.random() < share;
  }

  private broker(disk: SimulatedDisk, oracle: Oracle, clock = new SimulatedClock()): SimulatedBroker {
    return new SimulatedBroker(disk, oracle, clock, this.workload);
  }

  private newDisk(state?: DiskState): SimulatedDisk {
    const seed = below(this.random, 2 ** 31);
    return state === undefined ? SimulatedDisk.empty(seed) : SimulatedDisk.of(state, seed);
  }

  private async crashPointsOfWorkload(): Promise<CrashPoint[]> {
    const points: CrashPoint[] = [];
    await this.guard('the workload', async () => {
      const disk = this.newDisk();
      const broker = this.broker(disk, new Oracle(ROOT_DIR));
      this.collectCrashPoints(disk, broker, points, this.workload.name);
      await this.runWorkload(broker);
      broker.assertNothingBroken();
      points.push({ at: `${this.workload.name}, at the end`, state: disk.state, oracle: broker.oracle.clone() });
    });
    return points;
  }

  private collectCrashPoints(disk: SimulatedDisk, broker: SimulatedBroker, points: CrashPoint[], during: string): void {
    disk.onStep = ({ call, operation, path }) => {
      broker.look();
      points.push({
        at: `${during}, before call ${call} (${operation} ${path}) took effect`,
        state: disk.state,
        oracle: broker.oracle.clone(),
      });
    };
  }

  private async callsOfWorkload(): Promise<readonly Operation[]> {
    const disk = this.newDisk();
    await this.runWorkload(this.broker(disk, new Oracle(ROOT_DIR)));
    return disk.calls;
  }

  private async callsOfStart(state: DiskState, oracle: Oracle): Promise<readonly Operation[]> {
    const disk = this.newDisk(state);
    const broker = this.broker(disk, oracle);
    await this.start(broker, disk);
    return disk.calls;
  }

  private async runWorkload(broker: SimulatedBroker): Promise<void> {
    await this.finish(broker.clock, this.wholeWorkload(broker));
    await this.rest(broker);
  }

  private async wholeWorkload(broker: SimulatedBroker): Promise<void> {
    await broker.open();
    await this.workload.run(broker);
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

  /** Starts on what a crash left, asks the oracle, starts again, uses the broker on, and asks again after one more power cut. */
  private async recover(point: CrashPoint, alsoInRecovery: boolean): Promise<void> {
    this.report.images += 1;
    const recoveryPoints: CrashPoint[] = [];
    await this.guard(point.at, async () => {
      const oracle = point.oracle.clone();
      const disk = this.newDisk(point.state);
      const first = this.broker(disk, oracle);
      if (alsoInRecovery) this.collectRecoveryPoints(disk, point, recoveryPoints);
      await this.start(first, disk);
      disk.onStep = undefined;
      await this.look(first, disk);
      // What has been shown now must survive a power cut that leaves nothing that is not synced.
      if (disk.state.pending.length > 0) await this.lookAfterPowerCut(disk, oracle.clone());
      await this.finish(first.clock, first.close());

      const files = withoutLock(disk);
      const second = this.broker(disk, oracle);
      await this.start(second, disk);
      if (!sameFiles(files, withoutLock(disk))) throw new Violation('a second recovery changes files');
      await this.useOn(second, disk);
      await this.lookAfterPowerCut(disk, oracle);
    });
    await this.crashInRecovery(recoveryPoints);
  }

  /** The recovery dies too, and is run again. */
  private async crashInRecovery(points: readonly CrashPoint[]): Promise<void> {
    for (const point of points) {
      for (const image of crashImages(point.state, this.random, 1)) {
        if (this.random() < this.recoveryShare)
          await this.recover({ ...point, at: `${point.at}, image: ${image.name}`, state: image.state }, false);
      }
    }
  }

  private collectRecoveryPoints(disk: SimulatedDisk, { at, oracle }: CrashPoint, points: CrashPoint[]): void {
    disk.onStep = ({ call, operation, path }) => {
      const { state } = disk;
      // Where nothing is pending but names, nothing new can come of a crash.
      if (!state.pending.some((change) => change.kind !== 'name')) return;
      points.push({ at: `${at}; in the recovery, before call ${call} (${operation} ${path}) took effect`, state, oracle });
    };
  }

  private get recoveryShare(): number {
    return this.options.share >= 1 ? 0.25 : 0.05;
  }

  private async start(broker: SimulatedBroker, disk: SimulatedDisk): Promise<void> {
    const before = withoutLock(disk);
    try {
      await this.finish(broker.clock, broker.open());
    } catch (error) {
      const isUnchanged = sameFiles(before, withoutLock(disk));
      throw new Violation(`it does not start${isUnchanged ? '' : ' and has changed files'}: ${String(error)}`);
    }
  }

  private async look(broker: SimulatedBroker, disk: SimulatedDisk): Promise<void> {
    broker.assertNothingBroken();
    broker.oracle.checkLogs(await broker.readAll());
    broker.oracle.checkFiles(disk.files());
  }

  private async useOn(broker: SimulatedBroker, disk: SimulatedDisk): Promise<void> {
    this.runs += 1;
    broker.dispatch();
    await this.finish(broker.clock, useOn(broker, this.runs));
    if (this.workload.name === 'idempotent resend') await this.finish(broker.clock, resend(broker));
    await this.rest(broker);
    broker.oracle.checkAtRest(this.workload.dispatchers);
    await this.look(broker, disk);
  }

  private async lookAfterPowerCut(disk: SimulatedDisk, oracle: Oracle): Promise<void> {
    const after = this.newDisk(powerCut(disk.state, () => 'lost'));
    const broker = this.broker(after, oracle);
    await this.start(broker, after);
    await this.look(broker, after);
  }

  /** One fault in a run of the workload: nothing false is promised meanwhile, and when it is over everything goes on by itself. */
  private async fail(fault: Fault): Promise<void> {
    const at = `${this.workload.name}, call ${fault.call} fails with ${fault.error} ${fault.times} times`;
    this.report.errors += 1;
    const points: CrashPoint[] = [];
    await this.guard(at, async () => {
      const oracle = new Oracle(ROOT_DIR);
      const disk = this.newDisk();
      disk.fail(fault);
      let broker = this.broker(disk, oracle);
      disk.onStep = () => {
        broker.look();
        if (disk.hasStruck && this.random() < 0.02) points.push({ at: `${at}, then`, state: disk.state, oracle: oracle.clone() });
      };
      const work = this.wholeWorkload(broker);
      try {
        if ((await broker.clock.run(work, WAITS_IN_FAULT)) === 'waiting') {
          disk.heal();
          await this.finish(broker.clock, work);
        }
        disk.heal();
      } catch (error) {
        // A start that the disk refuses: it says so and calls nothing corrupt, and the next one does it.
        this.assertNoCorruption(error);
        disk.heal();
        broker = this.broker(disk, oracle);
        await this.start(broker, disk);
      }
      await this.comeBack(broker);
      await this.useOn(broker, disk);
      points.push({ at: `${at}, at the end`, state: disk.state, oracle: oracle.clone() });
    });
    for (const point of points) {
      const images = [...crashImages(point.state, this.random, 2)];
      const image = images[below(this.random, images.length)];
      if (image !== undefined) await this.recover({ ...point, at: `${point.at}, image: ${image.name}`, state: image.state }, false);
    }
  }

  /** A start that fails calls nothing corrupt, and the next one finds what the one before left: in the cache, or on the disk after a power cut. */
  private async failStart(point: CrashPoint, fault: Fault): Promise<void> {
    const at = `${point.at}; in the start, call ${fault.call} fails with ${fault.error} ${fault.times} times`;
    this.report.errors += 1;
    const disk = this.newDisk(point.state);
    await this.guard(at, async () => {
      disk.fail(fault);
      const broker = this.broker(disk, point.oracle.clone());
      try {
        await this.finish(broker.clock, broker.open());
        await this.finish(broker.clock, broker.close());
      } catch (error) {
        this.assertNoCorruption(error);
      }
    });
    await this.recover({ ...point, at: `${at}, then started again`, state: disk.state }, false);
    await this.recover({ ...point, at: `${at}, then a power cut`, state: powerCut(disk.state, () => 'lost') }, false);
  }

  private assertNoCorruption(error: unknown): void {
    if (!(error instanceof MmmqError)) throw error;
    if (error.code === ErrorCode.CORRUPT) throw new Violation(`an error of the disk is taken for corruption: ${error.message}`);
  }

  /** Every topic takes messages again, without a restart and without anybody's help. */
  private async comeBack(broker: SimulatedBroker): Promise<void> {
    for (const topic of broker.topics) {
      for (let tries = 0; ; tries += 1) {
        this.runs += 1;
        const publishing = broker.publish({ topic, content: { run: this.runs, number: 0 } });
        await this.finish(broker.clock, publishing);
        if (await publishing) break;
        if (tries > MAX_WAITS) throw new Violation(`${topic} does not come back: ${broker.log.slice(-3).join(' | ')}`);
        broker.clock.advance();
      }
    }
    const problems = await broker.engine.problems();
    if (problems.length > 0) throw new Violation(`all is well again, and yet: ${problems.map(({ reason }) => reason).join()}`);
  }

  private async guard(at: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const what = error instanceof Violation ? error.message : error instanceof Error ? String(error.stack) : String(error);
      this.report.violations.push(`${at} (seed ${this.options.seed}): ${what}`);
    }
  }
}

function withoutLock(disk: SimulatedDisk): Map<string, Buffer> {
  const files = disk.files();
  files.delete(LOCK_FILE);
  return files;
}

function sameFiles(a: ReadonlyMap<string, Buffer>, b: ReadonlyMap<string, Buffer>): boolean {
  return a.size === b.size && [...a].every(([path, bytes]) => b.get(path)?.equals(bytes) === true);
}
