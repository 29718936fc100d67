import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import type { Readable } from 'node:stream';

/** What every server prints when it can be used. */
const READY = /ready on (http:\S+)/;

export interface ServerOptions {
  /** What `programInput` gives it. */
  readonly input?: unknown;
  readonly cwd?: string;
  /** All that it finds in its environment, besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A server in a process of its own. What it complains about goes to the error output of the bench. */
export class ServerProcess {
  private constructor(
    private readonly child: ChildProcessByStdio<null, Readable, null>,
    readonly url: string,
    /** From the start of the process to its ready line. */
    readonly startMs: number,
  ) {}

  /** @throws {Error} when it ends before it is ready */
  static async start(script: string, { input, cwd, env }: ServerOptions = {}): Promise<ServerProcess> {
    const startedAtMs = performance.now();
    const child = spawn(process.execPath, input === undefined ? [script] : [script, JSON.stringify(input)], {
      cwd,
      env: { PATH: process.env['PATH'] ?? '', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const url = await readyUrl(child, script);
    return new ServerProcess(child, url, performance.now() - startedAtMs);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Ends it, in good order unless the signal says otherwise, and waits for that. Idempotent. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill(signal);
    await ended;
  }
}

function readyUrl(child: ChildProcessByStdio<null, Readable, null>, script: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    const onText = (text: string): void => {
      output += text;
      const url = READY.exec(output)?.[1];
      if (url === undefined) return;
      child.off('exit', onExit);
      // A pipe that nobody reads any more would stop the server when it is full.
      child.stdout.off('data', onText).resume();
      resolve(url);
    };
    const onExit = (): void => reject(new Error(`${script} ended before it was ready: ${output}`));
    child.stdout.setEncoding('utf8').on('data', onText);
    child.once('exit', onExit).once('error', reject);
  });
}
