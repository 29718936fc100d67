import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';

/** Where a command says what it has to say. */
export interface Terminal {
  /** The result, for people and programs. Resolves when more can be taken; false once nobody reads it any more. */
  print(text: string | Buffer): Promise<boolean>;
  /** What is beside the result. */
  note(line: string): void;
  readonly progress: Progress;
}

/** How far a long run has come. */
export interface Progress {
  begin(totalBytes: number): void;
  add(bytes: number): void;
  end(): void;
}

/** A run that is shorter shows no progress. */
const LONG_RUN_MS = 1_000;
const MIB = 1024 * 1024;

/** For what is read by a program, and for where nobody looks. */
export const NO_PROGRESS: Progress = { begin: ignore, add: ignore, end: ignore };

type Output = Writable & { readonly isTTY?: boolean };

/** The terminal of this process. A reader that goes away, such as `head`, is no error. */
export class ProcessTerminal implements Terminal {
  readonly progress: Progress;
  private isRead = true;

  /** @param nowMs counts on; where it began does not matter */
  constructor(
    private readonly output: Output = process.stdout,
    private readonly errors: Output = process.stderr,
    nowMs: () => number = () => performance.now(),
  ) {
    for (const end of ['error', 'close']) output.on(end, () => (this.isRead = false));
    errors.on('error', ignore);
    this.progress = errors.isTTY === true ? new ProgressBar(errors, nowMs) : NO_PROGRESS;
  }

  async print(text: string | Buffer): Promise<boolean> {
    if (this.isRead && !this.output.write(text)) {
      // A reader that is gone never drains: the error or the close that tells so ends the wait.
      const over = new AbortController();
      await Promise.race([once(this.output, 'drain', over), once(this.output, 'close', over)]).catch(() => (this.isRead = false));
      // The one that did not come would go on listening.
      over.abort();
    }
    return this.isRead;
  }

  note(line: string): void {
    this.errors.write(`${line}\n`);
  }
}

class ProgressBar implements Progress {
  private bar: SingleBar | undefined;
  private beganAtMs = 0;
  private totalBytes = 0;
  private bytes = 0;

  constructor(
    private readonly stream: Output,
    private readonly nowMs: () => number,
  ) {}

  begin(totalBytes: number): void {
    this.beganAtMs = this.nowMs();
    this.totalBytes = totalBytes;
    this.bytes = 0;
  }

  add(bytes: number): void {
    this.bytes += bytes;
    if (this.bar === undefined && this.nowMs() - this.beganAtMs > LONG_RUN_MS) {
      this.bar = new SingleBar({
        stream: this.stream,
        clearOnComplete: true,
        // Switched off, it would stay so in the terminal after a run that was interrupted; the line is short enough.
        linewrap: true,
        barsize: 30,
        format: 'read [{bar}] {value} of {total} MiB, {eta_formatted} to go',
      });
      this.bar.start(Math.ceil(this.totalBytes / MIB), 0);
    }
    this.bar?.update(Math.floor(this.bytes / MIB));
  }

  end(): void {
    this.bar?.stop();
    this.bar = undefined;
  }
}

function ignore(): void {
  // Nothing to be done.
}
