/**
 * Which topics have messages in the spool: newer messages of theirs have to go there too. Which topics those have that were there at the start is
 * not known before they are read, so until all of them are gone every topic counts.
 */
export class HeldTopics {
  private readonly counts = new Map<string, number>();

  /** @param older how many messages were there at the start */
  constructor(private older: number) {}

  has(topic: string): boolean {
    return this.older > 0 || this.counts.has(topic);
  }

  add(topic: string): void {
    this.counts.set(topic, (this.counts.get(topic) ?? 0) + 1);
  }

  remove(topic: string): void {
    const count = this.counts.get(topic) ?? 0;
    if (count > 1) this.counts.set(topic, count - 1);
    else this.counts.delete(topic);
  }

  /** One of those that were there at the start is gone. */
  removeOlder(): void {
    this.older -= 1;
  }

  /** The spool is empty, whatever was counted: a file of it that cannot be read takes its messages with it. */
  clear(): void {
    this.counts.clear();
    this.older = 0;
  }
}
