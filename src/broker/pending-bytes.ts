/** The bytes of publishes that were received and have no answer yet, in the whole broker: bounded, so that a flood cannot take all memory. */
export class PendingBytes {
  #count = 0;

  constructor(private readonly maxBytes: number) {}

  get count(): number {
    return this.#count;
  }

  /** @returns false, and takes none, when the bound would be passed */
  take(bytes: number): boolean {
    if (this.#count + bytes > this.maxBytes) return false;
    this.#count += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#count -= bytes;
  }
}
