/** So many messages share one acknowledgement. */
const MAX_MESSAGES = 100;

/** Messages that wait for an acknowledgement of them all. It goes out when they are many, or at the end of the turn of the event loop. */
export class VerdictLine<Message> {
  private numbers: number[] = [];
  private last: Message | undefined;

  constructor(private readonly acknowledge: (last: Message, numbers: readonly number[]) => void | Promise<void>) {}

  add(message: Message, numbers: readonly number[]): void {
    if (this.last === undefined) setImmediate(() => this.flush());
    this.last = message;
    this.numbers.push(...numbers);
    if (this.numbers.length >= MAX_MESSAGES) this.flush();
  }

  private flush(): void {
    const { last, numbers } = this;
    if (last === undefined) return;
    this.last = undefined;
    this.numbers = [];
    void this.acknowledge(last, numbers);
  }
}
