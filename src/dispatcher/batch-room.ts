/** So many bytes of batches one dispatcher has in memory at once. */
export const BATCH_BYTES_AT_ONCE = 32 * 1024 * 1024;

/**
 * The room for batches that all workers of a dispatcher share: however many of its topics wait for an answer, they do not hold a whole batch
 * each. Nobody waits for room; where there is little, batches are small. A batch has one message in any case, and what that one has beyond
 * the room is not counted.
 */
export class BatchRoom {
  private left = BATCH_BYTES_AT_ONCE;

  /** @returns how many bytes the taker may have: half of what is left at most, so that something is left for the next one */
  take(maxBytes: number): number {
    const bytes = Math.min(maxBytes, Math.floor(this.left / 2));
    this.left -= bytes;
    return bytes;
  }

  giveBack(bytes: number): void {
    this.left += bytes;
  }
}
