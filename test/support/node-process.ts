import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { afterEach } from '@jest/globals';

/** How long a program may take to print what is waited for before a test gives up on it. */
const PATIENCE_MS = 30_000;

export interface NodeProcessOptions {
  readonly cwd: string;
  /** All that the program finds in its environment, besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Arguments to Node itself: `['--import', …]`. */
  readonly nodeArguments?: readonly string[];
  /** A command that ends by becoming the command behind it, with the same process id: `['strace', '-D', …]`. */
  readonly under?: readonly string[];
}

/** How a program ended: with a code of its own, or by a signal. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A built program in a process of its own. */
export class NodeProcess {
  output = '';
  errors = '';
  private readonly exited: Promise<ProcessEnd>;
  private isRunning = true;
  private readonly child: ChildProcessByStdio<null, Readable, Readable>;
  private waiting: (() => void)[] = [];

  /** @throws {Error} when the program was not built */
  constructor(
    private readonly script: string,
    { cwd, env, nodeArguments = [], under = [] }: NodeProcessOptions,
  ) {
    if (!existsSync(script)) {
      throw new Error(`${script} is missing: run "npm test", or first "npm run build && npx tsc -p examples/tsconfig.json"`);
    }
    const [command, ...commandArguments] = [...under, process.execPath, ...nodeArguments, script];
    this.child = spawn(command ?? process.execPath, commandArguments, {
      cwd,
      env: { PATH: process.env['PATH'] ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => this.changed(() => (this.output += text)));
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => this.changed(() => (this.errors += text)));
    this.exited = once(this.child, 'close').then(([code, signal]) => {
      this.changed(() => (this.isRunning = false));
      return { code: code as number | null, signal: signal as NodeJS.Signals | null };
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Waits until the standard output has it. @throws {Error} when the program ends before, or takes too long */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    const giveUpAt = performance.now() + PATIENCE_MS;
    const deadline = setTimeout(() => this.changed(() => undefined), PATIENCE_MS + 1);
    try {
      for (;;) {
        const match = pattern.exec(this.output);
        if (match !== null) return match;
        if (!this.isRunning || performance.now() >= giveUpAt) {
          const { exitCode, signalCode } = this.child;
          const end = this.isRunning ? `within ${PATIENCE_MS} ms` : `before its end (code ${exitCode}, signal ${signalCode})`;
          throw new Error(`${this.script} did not print ${String(pattern)} ${end}: ${this.output}${this.errors}`);
        }
        await new Promise<void>((resolve) => this.waiting.push(resolve));
      }
    } finally {
      clearTimeout(deadline);
    }
  }

  /** Reads nothing more of what it prints, as a log pipe whose reader is gone. */
  closeOutputs(): void {
    this.child.stdout.destroy();
    this.child.stderr.destroy();
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals = 'SIGTERM'): Promise<ProcessEnd> {
    this.kill(signal);
    return this.exited;
  }

  /** Waits for the end that it comes to by itself. */
  ended(): Promise<ProcessEnd> {
    return this.exited;
  }

  private changed(change: () => unknown): void {
    change();
    for (const wake of this.waiting.splice(0)) wake();
  }
}

/** Starts programs and leaves none running behind a test. To be called at the top of a spec. */
export function nodeProcesses(): (script: string, options: NodeProcessOptions) => NodeProcess {
  const keep = endedAfterEach();
  return (script, options) => keep(new NodeProcess(script, options));
}

/** Takes programs that are to be gone when the test is over. To be called at the top of a spec. */
export function endedAfterEach(): <Program extends NodeProcess>(program: Program) => Program {
  const started: NodeProcess[] = [];
  afterEach(async () => {
    await Promise.all(started.splice(0).map((program) => program.end('SIGKILL')));
  });
  return (program) => {
    started.push(program);
    return program;
  };
}
