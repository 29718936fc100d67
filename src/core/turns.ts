export interface TurnOptions {
  /** Goes ahead of all who are not urgent. */
  readonly isUrgent?: boolean;
  /** Ends the wait: who has no turn yet gets none. Work that has begun is not touched. */
  readonly signal?: AbortSignal;
}

/** Waits for a turn. */
interface Waiting {
  readonly begin: () => void;
}

/**
 * Lets so many work at a time; the others wait in the order in which they came. It bounds what is in use at once, and keeps ten thousand
 * pieces of work from all being begun and none being finished.
 */
export class Turns {
  private readonly waiting = new Set<Waiting>();
  private readonly urgent = new Set<Waiting>();
  private free: number;

  constructor(atATime: number) {
    this.free = atATime;
  }

  /** Whether work would begin at once. */
  get hasFree(): boolean {
    return this.free > 0;
  }

  /** @throws the signal's reason where it ends the wait, and what the work throws */
  async take<T>(work: () => Promise<T>, { isUrgent = false, signal }: TurnOptions = {}): Promise<T> {
    signal?.throwIfAborted();
    if (this.free > 0) this.free -= 1;
    else await this.wait(isUrgent ? this.urgent : this.waiting, signal);
    try {
      return await work();
    } finally {
      this.pass();
    }
  }

  private wait(line: Set<Waiting>, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        line.delete(waiting);
        reject(signal?.reason as Error);
      };
      const waiting: Waiting = {
        begin: () => {
          line.delete(waiting);
          signal?.removeEventListener('abort', leave);
          resolve();
        },
      };
      line.add(waiting);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** The turn goes straight to the next in line: nobody who comes in between may overtake. */
  private pass(): void {
    const [next] = this.urgent.size > 0 ? this.urgent : this.waiting;
    if (next === undefined) this.free += 1;
    else next.begin();
  }
}
