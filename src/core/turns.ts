/**
 * Lets so many work at a time; the others wait in the order in which they came. It bounds the files that are in use at once, and keeps ten
 * thousand pieces of work from all being begun and none being finished.
 */
export class Turns {
  private readonly waiting: (() => void)[] = [];
  private free: number;

  constructor(atATime: number) {
    this.free = atATime;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free -= 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The turn goes straight to the next in line: nobody who comes in between may overtake.
      const next = this.waiting.shift();
      if (next === undefined) this.free += 1;
      else next();
    }
  }
}
