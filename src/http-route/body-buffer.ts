const NO_BYTES = Buffer.alloc(0);

/**
 * The bytes of a body, as they come. A client chooses how it cuts its body into chunks, and a chunk kept as an object of its own costs a
 * hundred bytes on top of what it holds; so there is one buffer, which doubles when it is full. It follows what has arrived, never what was
 * announced, and takes at most twice as much. A body that comes in one chunk is that chunk.
 */
export class BodyBuffer {
  #buffer: Buffer = NO_BYTES;
  #length = 0;

  /** @param maxBytes what the body cannot be larger than, so that the last doubling reserves nothing in vain */
  constructor(private readonly maxBytes: number) {}

  get length(): number {
    return this.#length;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  append(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (this.#length === 0) {
      this.#buffer = chunk;
    } else {
      if (length > this.#buffer.length) this.#grow(length);
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length = length;
  }

  #grow(length: number): void {
    const capacity = Math.max(length, Math.min(2 * length, this.maxBytes));
    // Not from the pool that small buffers share: one that stays for long would keep 8 KiB of it.
    const grown = Buffer.allocUnsafeSlow(capacity);
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
