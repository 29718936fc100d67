/** Messages that were sent equally often: those in front of `until`, as far as the run before. */
interface Run {
  readonly until: number;
  readonly sends: number;
}

/**
 * How often each message was sent that is not committed yet. Every send begins with the first of these and takes the next ones along, so a
 * message was never sent more often than the one in front of it: a few numbers say it of any batch.
 */
export class SendCounts {
  /** In the order of the offsets; `sends` falls from each to the next. */
  private runs: readonly Run[] = [];

  /**
   * Counts one send of `count` messages. What is in front of `first` is committed and forgotten.
   * @returns how often the first of them was sent by now
   */
  add(first: number, count: number): number {
    const end = first + count;
    const behind = this.runs.filter(({ until }) => until > end);
    const within = this.runs.filter(({ until }) => until > first && until <= end).map(({ until, sends }) => ({ until, sends: sends + 1 }));
    // The last ones of these were never sent before, or with some that are not sent now.
    const isSplit = within.at(-1)?.until !== end;
    this.runs = [...within, ...(isSplit ? [{ until: end, sends: (behind[0]?.sends ?? 0) + 1 }] : []), ...behind];
    return this.of(first);
  }

  of(offset: number): number {
    return this.runs.find(({ until }) => until > offset)?.sends ?? 0;
  }
}
