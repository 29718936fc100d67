/** What a message takes in memory beside its bytes, about. */
const MESSAGE_OVERHEAD_BYTES = 512;

/** How much may be in memory at once. */
export class Room {
  private taken = 0;

  constructor(private readonly maxBytes: number) {}

  /** @returns false, and takes nothing, where the message finds no room; one alone always does */
  take(body: Buffer): boolean {
    const bytes = body.length + MESSAGE_OVERHEAD_BYTES;
    if (this.taken > 0 && this.taken + bytes > this.maxBytes) return false;
    this.taken += bytes;
    return true;
  }

  giveBack(body: Buffer): void {
    this.taken -= body.length + MESSAGE_OVERHEAD_BYTES;
  }
}
