import { once } from 'node:events';
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

/** The terminal of this process. A reader that goes away, such as `head`, is no error. */
export class ProcessTerminal implements Terminal {
  readonly progress: Progress = process.stderr.isTTY ? new ProgressBar() : { begin: ignore, add: ignore, end: ignore };
  private isRead = true;

  constructor() {
    process.stdout.on('error', () => (this.isRead = false));
    process.stderr.on('error', ignore);
  }

  async print(text: string | Buffer): Promise<boolean> {
    if (this.isRead && !process.stdout.write(text)) {
      // A reader that is gone never drains: the error or the close that tells so ends the wait.
      await Promise.race([once(process.stdout, 'drain'), once(process.stdout, 'close')]).catch(() => (this.isRead = false));
    }
    return this.isRead;
  }

  note(line: string): void {
    process.stderr.write(`${line}\n`);
  }
}

class ProgressBar implements Progress {
  private bar: SingleBar | undefined;
  private beganAtMs = 0;
  private totalBytes = 0;
  private bytes = 0;

  begin(totalBytes: number): void {
    this.beganAtMs = performance.now();
    this.totalBytes = totalBytes;
    this.bytes = 0;
  }

  add(bytes: number): void {
    this.bytes += bytes;
    if (this.bar === undefined && performance.now() - this.beganAtMs > LONG_RUN_MS) {
      this.bar = new SingleBar({
        stream: process.stderr,
        clearOnComplete: true,
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
