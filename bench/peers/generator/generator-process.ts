import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Measurement } from '../../harness/measurement.js';
import type { Stoppable } from '../../harness/workbench.js';
import type { Order } from './generator.js';

const PROGRAM = join(import.meta.dirname, 'generator.program.js');
/** None of them runs longer by itself; one that does hangs. */
const TIMEOUT_MS = 120_000;

/** The load generator in a process of its own, which does not outlive this one. */
export class GeneratorProcess implements Stoppable {
  /** @throws {Error} with all that the generator said, when it fails or takes too long */
  readonly result: Promise<Measurement>;
  private readonly child: ChildProcess;

  constructor(order: Order) {
    this.child = fork(PROGRAM, [JSON.stringify(order)], { stdio: ['ignore', 'inherit', 'pipe', 'ipc'], timeout: TIMEOUT_MS });
    this.result = resultOf(this.child, order.target.client);
    // It is awaited by whoever wants it. When the bench is stopped, nobody does any more.
    this.result.catch(() => {});
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}

function resultOf(child: ChildProcess, client: string): Promise<Measurement> {
  return new Promise((resolve, reject) => {
    let complaints = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (complaints += text));
    child.once('message', (result) => resolve(result as Measurement));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      reject(new Error(`the load generator for ${client} failed (${signal ?? `exit code ${code}`}): ${complaints}`));
    });
  });
}
