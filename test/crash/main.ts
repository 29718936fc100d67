import { fork, type ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Logger } from '@nestjs/common';
import { BOUNDED, EVERYTHING, PART_NAMES, partRun, PARTS, type Part } from './parts.js';
import type { SweepReport } from './sweep.js';
import { WORKLOADS } from './workloads.js';

/*
 * `npm run crash`: every workload, every step, every image, every error, in as many processes as there are cores.
 *
 *   --seed <n>         another run of it (1)
 *   --workload <name>  this one alone; can be given several times
 *   --part <name>      crashes, errors or repair alone; can be given several times
 *   --jobs <n>         so many processes
 *   --bail             end at the first violation
 *   --bounded          only what the suite has time for
 *   --json <file>      writes what came of each part
 *
 * The last line says how many different disks were recovered and checked. Exit code 0 when everything ran and nothing was violated.
 */

/** What a process is told to do. */
interface Task extends Part {
  readonly seed: number;
  readonly isBailing: boolean;
  readonly isBounded: boolean;
}

/** What came of a part, in the file of `--json`. */
export interface PartOutcome extends Part {
  /** Whether it came to its end. */
  readonly isWhole: boolean;
  readonly report: SweepReport;
}

/** What it says: how far it has come, and at the end whether it came to the end of its part. */
interface Progress {
  readonly report: SweepReport;
  readonly isWhole?: boolean;
}

/** The only argument of a process that runs one part and hears by a message which. */
const PART_PROCESS = 'part-process';
const TELLS_EVERY_MS = 1_000;
const PRINTS_EVERY_MS = 20_000;

async function runPart(task: Task): Promise<void> {
  // The one who started it is gone.
  process.once('disconnect', () => process.exit(1));
  Logger.overrideLogger(false);
  const { report, run } = partRun(task, task.isBounded ? BOUNDED : EVERYTHING, task.seed, task.isBailing);
  const telling = setInterval(() => process.send?.({ report } satisfies Progress), TELLS_EVERY_MS);
  const isWhole = await run();
  clearInterval(telling);
  process.send?.({ report, isWhole } satisfies Progress, () => process.exit(0));
}

async function runAll(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      workload: { type: 'string', multiple: true },
      part: { type: 'string', multiple: true },
      jobs: { type: 'string', default: String(availableParallelism()) },
      bail: { type: 'boolean', default: false },
      bounded: { type: 'boolean', default: false },
      json: { type: 'string' },
    },
  });
  const seed = Number(values.seed);
  const jobs = Number(values.jobs);
  const unknown = [
    ...(values.workload ?? []).filter((name) => !WORKLOADS.some((workload) => workload.name === name)),
    ...(values.part ?? []).filter((name) => !PART_NAMES.some((part) => part === name)),
    ...(Number.isSafeInteger(seed) && jobs >= 1 ? [] : ['a seed or a number of jobs that is no number']),
  ];
  if (unknown.length > 0) {
    print(`unknown: ${unknown.join(', ')}`, `workloads: ${WORKLOADS.map(({ name }) => JSON.stringify(name)).join(', ')}`);
    process.exitCode = 2;
    return;
  }
  const parts = PARTS.filter(
    ({ workload, part }) => (values.workload ?? [workload]).includes(workload) && (values.part ?? [part]).includes(part),
  );
  const run = new Run(parts, jobs, { seed, isBailing: values.bail, isBounded: values.bounded });
  process.once('SIGTERM', () => {
    run.stop();
    process.exit(143);
  });
  await run.toTheEnd();
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(run.outcomes));
}

class Run {
  private readonly beganAtMs = performance.now();
  private readonly waiting: Part[];
  private readonly reports = new Map<Part, SweepReport>();
  private readonly whole = new Set<Part>();
  private readonly violations: string[] = [];
  private readonly children = new Set<ChildProcess>();
  private done = 0;
  private isStopping = false;

  constructor(
    private readonly parts: readonly Part[],
    private readonly jobs: number,
    private readonly manner: Omit<Task, keyof Part>,
  ) {
    // The longest first, so that no core is idle at the end; where the first violation is the end, the crashes first.
    const weight = ({ workload, part }: Part): number =>
      part === 'repair' ? 2 : workload.startsWith('sixty-four') || part === 'errors' ? 1 : 0;
    this.waiting = [...parts].sort((a, b) => (manner.isBailing ? weight(a) - weight(b) : weight(b) - weight(a)));
  }

  get outcomes(): PartOutcome[] {
    return this.parts.map((part) => ({ ...part, isWhole: this.whole.has(part), report: this.reportOf(part) }));
  }

  async toTheEnd(): Promise<void> {
    print(`${this.parts.length} parts in ${this.jobs} processes, seed ${this.manner.seed}`);
    const printing = setInterval(() => this.printProgress(), PRINTS_EVERY_MS);
    await Promise.all(Array.from({ length: this.jobs }, () => this.work()));
    clearInterval(printing);
    const { images, repeats, errors } = this.total;
    for (const violation of this.violations) print(violation);
    const isWhole = this.whole.size === this.parts.length;
    if (!isWhole) print('not everything ran');
    print(
      `${errors} errors; ${repeats} more images were equal to one that was checked; seed ${this.manner.seed}, ${this.seconds} s`,
      `crash: ${images} images, ${this.violations.length} violations`,
    );
    process.exitCode = this.violations.length > 0 || !isWhole || images === 0 ? 1 : 0;
  }

  private async work(): Promise<void> {
    for (let part = this.waiting.shift(); part !== undefined && !this.isStopping; part = this.waiting.shift()) {
      const isWhole = await this.runInProcess(part);
      this.done += 1;
      if (isWhole) this.whole.add(part);
      const { images, violations } = this.reportOf(part);
      print(
        `${this.seconds} s: ${part.part} of ${part.workload}: ${images} images, ${violations.length} violations${isWhole ? '' : ', not to its end'}`,
      );
      for (const violation of violations) this.violations.push(`${violation}\n  to see it again: ${this.command(part)}`);
      if (violations.length > 0 && this.manner.isBailing) this.stop();
    }
  }

  private reportOf(part: Part): SweepReport {
    return this.reports.get(part) ?? { images: 0, repeats: 0, errors: 0, violations: [] };
  }

  stop(): void {
    this.isStopping = true;
    for (const child of this.children) child.kill();
  }

  private runInProcess(part: Part): Promise<boolean> {
    return new Promise((resolve) => {
      const child = fork(fileURLToPath(import.meta.url), [PART_PROCESS], { serialization: 'advanced' });
      this.children.add(child);
      let isWhole = false;
      child.on('message', (progress: Progress) => {
        this.reports.set(part, progress.report);
        isWhole = progress.isWhole ?? false;
      });
      child.once('close', () => {
        this.children.delete(child);
        resolve(isWhole);
      });
      child.send({ ...part, ...this.manner } satisfies Task);
    });
  }

  private printProgress(): void {
    const { images, errors } = this.total;
    print(`${this.seconds} s: ${this.done} of ${this.parts.length} parts, ${images} images, ${errors} errors`);
  }

  private get total(): { images: number; repeats: number; errors: number } {
    const sum = { images: 0, repeats: 0, errors: 0 };
    for (const { images, repeats, errors } of this.reports.values()) {
      sum.images += images;
      sum.repeats += repeats;
      sum.errors += errors;
    }
    return sum;
  }

  private get seconds(): number {
    return Math.round((performance.now() - this.beganAtMs) / 1_000);
  }

  private command({ workload, part }: Part): string {
    return `npm run crash -- ${this.manner.isBounded ? '--bounded ' : ''}--seed ${this.manner.seed} --workload ${JSON.stringify(workload)} --part ${part} --bail`;
  }
}

function print(...lines: string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

if (process.argv[2] === PART_PROCESS) process.once('message', (task: Task) => void runPart(task));
else await runAll();
