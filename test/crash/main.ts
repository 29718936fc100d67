import { fork, type ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Logger } from '@nestjs/common';
import { EVERYTHING, PART_NAMES, partRun, PARTS, type Part } from './parts.js';
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
 *
 * The last line says how many different disks were recovered and checked. Exit code 0 when everything ran and nothing was violated.
 */

/** What a process is told to do. */
interface Task extends Part {
  readonly seed: number;
  readonly isBailing: boolean;
}

/** What it says: how far it has come, and at the end whether it came to the end of its part. */
interface Progress {
  readonly report: SweepReport;
  readonly isWhole?: boolean;
}

const TELLS_EVERY_MS = 1_000;
const PRINTS_EVERY_MS = 20_000;

async function runPart(task: Task): Promise<void> {
  // The one who started it is gone.
  process.once('disconnect', () => process.exit(1));
  Logger.overrideLogger(false);
  const { report, run } = partRun(task, EVERYTHING, task.seed, task.isBailing);
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
  await new Run(parts, seed, jobs, values.bail).toTheEnd();
}

class Run {
  private readonly beganAtMs = performance.now();
  private readonly waiting: Part[];
  private readonly reports = new Map<Part, SweepReport>();
  private readonly violations: string[] = [];
  private readonly children = new Set<ChildProcess>();
  private done = 0;
  private isWhole = true;
  private isStopping = false;

  constructor(
    private readonly parts: readonly Part[],
    private readonly seed: number,
    private readonly jobs: number,
    private readonly isBailing: boolean,
  ) {
    // The longest first, so that no core is idle at the end.
    const weight = ({ workload, part }: Part): number =>
      part === 'repair' ? 2 : workload.startsWith('sixty-four') || part === 'errors' ? 1 : 0;
    this.waiting = [...parts].sort((a, b) => weight(b) - weight(a));
  }

  async toTheEnd(): Promise<void> {
    print(`${this.parts.length} parts in ${this.jobs} processes, seed ${this.seed}`);
    const printing = setInterval(() => this.printProgress(), PRINTS_EVERY_MS);
    await Promise.all(Array.from({ length: this.jobs }, () => this.work()));
    clearInterval(printing);
    const { images, repeats, errors } = this.total;
    for (const violation of this.violations) print(violation);
    if (!this.isWhole) print('not everything ran');
    print(
      `${errors} errors; ${repeats} more images were equal to one that was checked; seed ${this.seed}, ${this.seconds} s`,
      `crash: ${images} images, ${this.violations.length} violations`,
    );
    process.exitCode = this.violations.length > 0 || !this.isWhole || images === 0 ? 1 : 0;
  }

  private async work(): Promise<void> {
    for (let part = this.waiting.shift(); part !== undefined && !this.isStopping; part = this.waiting.shift()) {
      const isWhole = await this.runInProcess(part);
      this.done += 1;
      if (!isWhole) this.isWhole = false;
      const { images, violations } = this.reports.get(part) ?? { images: 0, violations: [] };
      print(
        `${this.seconds} s: ${part.part} of ${part.workload}: ${images} images, ${violations.length} violations${isWhole ? '' : ', not to its end'}`,
      );
      for (const violation of violations) this.violations.push(`${violation}\n  to see it again: ${this.command(part)}`);
      if (violations.length > 0 && this.isBailing) this.stop();
    }
    if (this.waiting.length > 0) this.isWhole = false;
  }

  private stop(): void {
    this.isStopping = true;
    for (const child of this.children) child.kill();
  }

  private runInProcess(part: Part): Promise<boolean> {
    return new Promise((resolve) => {
      const child = fork(fileURLToPath(import.meta.url), [], { serialization: 'advanced' });
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
      child.send({ ...part, seed: this.seed, isBailing: this.isBailing } satisfies Task);
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
    return `npm run crash -- --seed ${this.seed} --workload ${JSON.stringify(workload)} --part ${part} --bail`;
  }
}

function print(...lines: string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

if (process.send === undefined) await runAll();
else process.once('message', (task: Task) => void runPart(task));
