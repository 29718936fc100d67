import { CorruptFileError } from './corrupt-file.error.js';
import type { QueueStore } from './queue-store.js';
import type { WorkLine } from './work-line.js';

/** Somebody who wants the next message. */
interface Taker {
  /** Whether to wait where there is none. */
  readonly waits: boolean;
  /** The next message can be taken. */
  readonly take: () => void;
  /** There is none. */
  readonly none: () => void;
  readonly reject: (error: unknown) => void;
}

/** An answer that can be waited for no longer. */
export interface Waiting<T> {
  readonly answer: Promise<T | undefined>;
  /** The answer is undefined, if there is none yet. */
  readonly cancel: () => void;
}

/**
 * The line of those who want the next message, in the order of their arrival. A message that was read ahead is given at once, whatever the
 * disk is busy with; for another one the line reads on.
 */
export class TakeLine {
  private takers: Taker[] = [];
  private serving: Promise<void> = Promise.resolve();
  private isServing = false;
  private isClosed = false;

  /**
   * @param sync makes durable what was taken; never rejects
   * @param onTaken is called after every message
   */
  constructor(
    private readonly store: QueueStore,
    private readonly work: WorkLine,
    private readonly sync: () => Promise<void>,
    private readonly onTaken: () => void,
  ) {}

  /**
   * @param use takes the next message from the store
   * @returns what `use` has made of it, or undefined where there is none
   */
  next<T>(use: () => T): Promise<T | undefined> {
    if (!this.isReady()) return this.join(use, false).answer;
    const taken = use();
    this.onTaken();
    this.readAhead();
    return Promise.resolve(taken);
  }

  /** As {@link next}, and waits until there is one, or the line is closed. */
  waitForNext<T>(use: () => T): Waiting<T> {
    return this.isReady() ? { answer: this.next(use), cancel: () => undefined } : this.join(use, true);
  }

  /** There may be something for those who wait. */
  wake(): void {
    if (this.takers.length > 0 && !this.isServing) this.serving = this.serve();
  }

  /** Those who wait get nothing. @returns when nothing is read any more */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const { none } of this.takers.splice(0)) none();
    await this.serving;
  }

  private isReady(): boolean {
    return this.takers.length === 0 && !this.isClosed && !this.store.isSyncDue && this.store.peek() !== undefined;
  }

  private join<T>(use: () => T, waits: boolean): Waiting<T> {
    let cancel = (): void => undefined;
    const answer = new Promise<T | undefined>((resolve, reject) => {
      const none = (): void => resolve(undefined);
      const taker: Taker = { waits, take: () => resolve(use()), none, reject };
      cancel = () => {
        this.takers = this.takers.filter((each) => each !== taker);
        none();
      };
      if (this.isClosed) none();
      else this.takers.push(taker);
    });
    this.wake();
    return { answer, cancel };
  }

  private async serve(): Promise<void> {
    this.isServing = true;
    while (this.takers.length > 0) {
      try {
        // So that no more are taken than may come again. A disk that fails to sync keeps nobody from taking.
        if (this.store.isSyncDue) await this.sync();
        if (this.store.peek() !== undefined) this.give();
        else if (this.store.hasNext) await this.readOn();
        else if (!this.sendAway()) break;
      } catch (error) {
        this.takers.shift()?.reject(error);
      }
    }
    this.isServing = false;
  }

  private give(): void {
    const taker = this.takers.shift();
    if (taker === undefined) return;
    taker.take();
    this.onTaken();
    this.readAhead();
  }

  /** While nobody waits, so that the next one does not, and that a file that cannot be read is known before more is written to it. */
  private readAhead(): void {
    if (this.takers.length > 0 || this.isClosed || this.store.peek() !== undefined || !this.store.hasNext) return;
    // Whoever comes next hears of an error.
    this.join(() => undefined, false).answer.catch(() => undefined);
  }

  /** @returns whether there was somebody who does not wait */
  private sendAway(): boolean {
    const leaving = this.takers.filter(({ waits }) => !waits);
    this.takers = this.takers.filter(({ waits }) => waits);
    for (const { none } of leaving) none();
    return leaving.length > 0;
  }

  private async readOn(): Promise<void> {
    if (this.store.isNextDoubtful) await this.work.run(() => this.store.sync());
    try {
      await this.store.readAhead();
    } catch (error) {
      if (!(error instanceof CorruptFileError)) throw error;
      await this.work.run(() => this.store.skipFile(error));
      this.onTaken();
    }
  }
}
