import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Scale } from './scale.js';
import { ServerProcess, type ServerOptions } from './server-process.js';

/** What can be ended, in good order. Never fails, and may be called again. */
export interface Stoppable {
  stop(): Promise<void>;
}

/** What a claim is measured on: directories and servers, all of which are gone when it is cleared. */
export class Workbench {
  private readonly directories: string[] = [];
  private readonly servers: Stoppable[] = [];
  private isCleared = false;
  private clearing: Promise<void> = Promise.resolve();

  /** @param rootDir where the directories are made; on the disk that is to be measured */
  constructor(
    readonly scale: Scale,
    private readonly rootDir: string,
  ) {}

  /** A new and empty directory. */
  async directory(): Promise<string> {
    this.refuseIfCleared();
    await mkdir(this.rootDir, { recursive: true });
    const directory = await mkdtemp(join(this.rootDir, 'mmmq-bench-'));
    this.directories.push(directory);
    return directory;
  }

  /** Starts a server and waits until it is ready. */
  async serve(script: string, options?: ServerOptions): Promise<ServerProcess> {
    this.refuseIfCleared();
    const server = await ServerProcess.start(script, options);
    this.servers.push(server);
    if (this.isCleared) await this.clear();
    this.refuseIfCleared();
    return server;
  }

  /** Starts a process of another kind, which is stopped like a server, also when it is not ready yet. */
  adopt<Process extends Stoppable>(start: () => Process): Process {
    this.refuseIfCleared();
    const started = start();
    this.servers.push(started);
    return started;
  }

  /**
   * The servers stop in the opposite order, so that a broker does not miss the consumer that was there before it. No directory goes before
   * all have stopped, however often this is called.
   */
  clear(): Promise<void> {
    this.isCleared = true;
    this.clearing = this.clearing.then(() => this.clearOnce());
    return this.clearing;
  }

  private async clearOnce(): Promise<void> {
    for (const server of this.servers.splice(0).toReversed()) await server.stop();
    for (const directory of this.directories.splice(0)) await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  }

  /** What goes on behind a clearing, as after Ctrl-C, must not leave anything behind. */
  private refuseIfCleared(): void {
    if (this.isCleared) throw new Error('the bench was told to stop');
  }
}
