import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { afterEach } from '@jest/globals';

/** How long a program may take to print what is waited for, or to end, before a test gives up on it. */
const PATIENCE_MS = 30_000;

export interface NodeProcessOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A built program in a process of its own. */
export class NodeProcess {
  output = '';
  errors = '';
  private readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  private isRunning = true;
  private readonly child: ChildProcess;
  private waiting: (() => void)[] = [];

  /** @throws {Error} when the program was not built */
  constructor(
    private readonly script: string,
    { cwd, env }: NodeProcessOptions,
  ) {
    if (!existsSync(script)) {
      throw new Error(`${script} is missing: run "npm test", or first "npm run build && npx tsc -p examples/tsconfig.json"`);
    }
    const child = spawn(process.execPath, [script], { cwd, env: { PATH: process.env['PATH'] ?? '', ...env }, stdio: 'pipe' });
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.changed(() => (this.output += text)));
    child.stderr.setEncoding('utf8').on('data', (text: string) => this.changed(() => (this.errors += text)));
    this.exited = once(child, 'close').then(([code, signal]) => {
      this.changed(() => (this.isRunning = false));
      return { code: code as number | null, signal: signal as NodeJS.Signals | null };
    });
    this.child = child;
  }

  /** Waits until the standard output has it. @throws {Error} when the program ends before, or takes too long */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    const deadline = setTimeout(() => this.changed(() => undefined), PATIENCE_MS);
    const giveUpAt = performance.now() + PATIENCE_MS;
    try {
      for (;;) {
        const match = pattern.exec(this.output);
        if (match !== null) return match;
        if (!this.isRunning || performance.now() >= giveUpAt) {
          throw new Error(`${this.script} did not print ${String(pattern)}: ${this.output}${this.errors}`);
        }
        await new Promise<void>((resolve) => this.waiting.push(resolve));
      }
    } finally {
      clearTimeout(deadline);
    }
  }

  /** Sends the signal and waits for the end. @returns how it ended */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    this.child.kill(signal);
    return this.exited;
  }

  /** Waits for the end that it comes to by itself. */
  ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    return this.exited;
  }

  private changed(change: () => unknown): void {
    change();
    for (const wake of this.waiting.splice(0)) wake();
  }
}

/** Starts programs and leaves none running behind a test. To be called at the top of a spec. */
export function nodeProcesses(): (script: string, options: NodeProcessOptions) => NodeProcess {
  const started: NodeProcess[] = [];
  afterEach(async () => {
    await Promise.all(started.splice(0).map((program) => program.end('SIGKILL')));
  });
  return (script, options) => {
    const program = new NodeProcess(script, options);
    started.push(program);
    return program;
  };
}
