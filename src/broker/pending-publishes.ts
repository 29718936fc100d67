/** So many publishes may wait for their answer at once, in the whole broker. Each costs some kilobytes, however small its body is. */
export const MAX_PENDING_PUBLISHES = 10_000;

/**
 * The publishes that were received and have no answer yet, in the whole broker: bounded in bytes and in number, so that a flood takes
 * neither all memory nor all time. The bytes of a body count as they arrive, the publish itself when it is there whole.
 */
export class PendingPublishes {
  #bytes = 0;
  #count = 0;

  constructor(
    private readonly maxBytes: number,
    private readonly maxCount = MAX_PENDING_PUBLISHES,
  ) {}

  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#count;
  }

  /** @returns false, and takes none, when the bound would be passed */
  takeBytes(bytes: number): boolean {
    if (this.#bytes + bytes > this.maxBytes) return false;
    this.#bytes += bytes;
    return true;
  }

  giveBackBytes(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** Counts a publish whose bytes are taken already. @returns false when there are too many */
  begin(): boolean {
    if (this.#count >= this.maxCount) return false;
    this.#count += 1;
    return true;
  }

  /** The publish has its answer, and its bytes are given back with it. */
  end(bytes: number): void {
    this.#count -= 1;
    this.giveBackBytes(bytes);
  }
}
