import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const REPOSITORY = join(import.meta.dirname, '../..');
export const BROKER_MAIN = join(REPOSITORY, 'dist/main.js');

/** How long a broker may take to be ready or to stop before a test gives up on it. */
const PATIENCE_MS = 30_000;

export interface BrokerProcessOptions {
  /** The working directory: `data` is made below it, and `config/mmmq.yaml` where there is a configuration. */
  readonly cwd: string;
  /** The text of config/mmmq.yaml. */
  readonly config?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A broker as an operator runs it: the built program in a process of its own. */
export class BrokerProcess {
  output = '';
  errors = '';
  url = '';
  private readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;

  private constructor(private readonly child: ChildProcess) {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.errors += text));
    this.exited = once(child, 'close').then(([code, signal]) => ({ code: code as number | null, signal: signal as NodeJS.Signals | null }));
  }

  /** Starts the program and does not wait for anything. */
  static async spawn({ cwd, config, env }: BrokerProcessOptions): Promise<BrokerProcess> {
    if (config !== undefined) {
      await mkdir(join(cwd, 'config'), { recursive: true });
      await writeFile(join(cwd, 'config/mmmq.yaml'), config);
    }
    const child = spawn(process.execPath, [BROKER_MAIN], {
      cwd,
      env: { PATH: process.env['PATH'] ?? '', SERVER_PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new BrokerProcess(child);
  }

  /** Starts the program and waits until it says that it is ready. */
  static async start(options: BrokerProcessOptions): Promise<BrokerProcess> {
    const broker = await BrokerProcess.spawn(options);
    await broker.ready();
    return broker;
  }

  async ready(): Promise<void> {
    this.url = (await this.printed(/mmmq is ready on (http:\/\/\S+)/))[1] ?? '';
  }

  /** Waits until the program's output has what is sought. @throws when it ends before that */
  async printed(sought: RegExp): Promise<RegExpExecArray> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const match = sought.exec(this.output);
      if (match !== null) return match;
      if (this.child.exitCode !== null || this.child.signalCode !== null) throw new Error(`the broker ended: ${this.output}${this.errors}`);
      if (Date.now() > deadline) throw new Error(`the broker did not print ${sought}: ${this.output}${this.errors}`);
      await sleep(5);
    }
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Sends the signal and waits for the end. @returns how it ended */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    this.child.kill(signal);
    return this.ended();
  }

  ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    return this.exited;
  }

  publish(message: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof message === 'string' ? message : JSON.stringify(message),
    });
  }
}
