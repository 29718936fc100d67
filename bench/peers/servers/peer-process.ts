import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { Stoppable, Workbench } from '../../harness/workbench.js';

/** A server that is not ready by then hangs. */
const START_TIMEOUT_MS = 90_000;
/** A server that has not ended by then is killed; its data is removed all the same. */
const STOP_TIMEOUT_MS = 15_000;
/** What is kept of the output of a server, and what is shown of it when it fails. */
const OUTPUT_CHARACTERS = 200_000;
const SHOWN_CHARACTERS = 4_000;

export interface PeerProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** All that it finds in its environment, besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whose rights it has; those of the bench where there is none. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Default SIGTERM. */
  readonly stopSignal?: NodeJS.Signals;
  /** What it prints when it can be used; without it, it can be used at once. */
  readonly ready?: RegExp;
}

/** A server of somebody else in a process of its own, which is the bench's alone and ends with it. */
export class PeerProcess implements Stoppable {
  private output = '';

  private constructor(
    private readonly child: ChildProcess,
    private readonly stopSignal: NodeJS.Signals,
  ) {
    const add = (text: string): void => void (this.output = (this.output + text).slice(-OUTPUT_CHARACTERS));
    child.stdout?.setEncoding('utf8').on('data', add);
    child.stderr?.setEncoding('utf8').on('data', add);
  }

  /** @throws {Error} with the end of its output, when it ends before it is ready, or is not ready in time */
  static async start(bench: Workbench, program: PeerProgram): Promise<PeerProcess> {
    const { command, args, cwd, env, user, stopSignal = 'SIGTERM', ready } = program;
    const process = bench.adopt(() => {
      const child = spawn(command, args, { cwd, env: environmentWith(env), stdio: ['ignore', 'pipe', 'pipe'], ...user });
      return new PeerProcess(child, stopSignal);
    });
    await process.printed(ready, command);
    return process;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** What the first group of a pattern finds in its output so far, or `unknown`. */
  found(pattern: RegExp): string {
    return pattern.exec(this.output)?.[1] ?? 'unknown';
  }

  async stop(): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.child, 'exit');
    this.child.kill(this.stopSignal);
    const ending = new AbortController();
    await Promise.race([ended, setTimeout(STOP_TIMEOUT_MS, undefined, { signal: ending.signal })]);
    ending.abort();
    if (this.hasEnded) return;
    this.child.kill('SIGKILL');
    await ended;
  }

  private get hasEnded(): boolean {
    return this.child.pid === undefined || this.child.exitCode !== null || this.child.signalCode !== null;
  }

  private printed(ready: RegExp | undefined, command: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (what: string): void => reject(new Error(`${command} ${what}: ${this.output.slice(-SHOWN_CHARACTERS)}`));
      const timer = globalThis.setTimeout(() => fail(`was not ready after ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
      const isReady = (): void => {
        if (!(ready?.test(this.output) ?? true)) return;
        clearTimeout(timer);
        resolve();
      };
      this.child.once('error', reject).once('close', () => {
        clearTimeout(timer);
        fail('ended before it was ready');
      });
      this.child.stdout?.on('data', isReady);
      this.child.stderr?.on('data', isReady);
      this.child.once('spawn', isReady);
    });
  }
}

function environmentWith(env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], ...env };
}
