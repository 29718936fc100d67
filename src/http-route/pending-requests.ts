/** So many requests may wait for their answer at once. Each costs some kilobytes, however small its body is. */
export const MAX_PENDING_REQUESTS = 10_000;
/** So many bytes of headers they may have together: Node.js takes 16 KiB of them with each request, and keeps them until it is answered. */
export const MAX_PENDING_HEADER_BYTES = 32 * 1024 * 1024;

/**
 * The requests that were received and have no answer yet: all publishes of a broker, say. Bounded in bytes and in number, so that a flood takes
 * neither all memory nor all time. The bytes of a body count as they arrive, the request itself and its headers when it is there whole.
 */
export class PendingRequests {
  #bytes = 0;
  #headerBytes = 0;
  #count = 0;

  constructor(private readonly maxBytes: number) {}

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

  /** Counts a request whose bytes are taken already. @returns false when there are too many, or too many bytes of headers */
  begin(headerBytes: number): boolean {
    if (this.#count >= MAX_PENDING_REQUESTS || this.#headerBytes + headerBytes > MAX_PENDING_HEADER_BYTES) return false;
    this.#count += 1;
    this.#headerBytes += headerBytes;
    return true;
  }

  /** The request has its answer, and its bytes are given back with it. */
  end(bytes: number, headerBytes: number): void {
    this.#count -= 1;
    this.#headerBytes -= headerBytes;
    this.giveBackBytes(bytes);
  }
}
