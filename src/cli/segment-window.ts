import { ENTRY_HEADER_BYTES } from '../core/index.js';
import { entryBytesAt, payloadAt, type SegmentStores } from '../storage/index.js';

/** What is read of a segment file at once. One larger entry is read whole: 16 MiB at most, as no entry is larger. */
const WINDOW_BYTES = 1024 * 1024;

/** Reads a segment file from its beginning to its end with one window of memory, and looks ahead without moving it. */
export class SegmentWindow {
  private window: Buffer = Buffer.alloc(0);
  private windowPosition = 0;

  constructor(
    private readonly stores: SegmentStores,
    private readonly path: string,
    /** Nothing behind this position is looked at. */
    readonly end: number,
  ) {}

  /** Where the entry at `position` ends as its own length says, or undefined where that cannot be right. */
  async endByLength(position: number): Promise<number | undefined> {
    if (!(position >= 0 && position + ENTRY_HEADER_BYTES <= this.end)) return undefined;
    const header = this.held(position, ENTRY_HEADER_BYTES) ?? (await this.stores.segments.read(this.path, position, ENTRY_HEADER_BYTES));
    const bytes = header.length < ENTRY_HEADER_BYTES ? undefined : entryBytesAt(header, 0);
    return bytes === undefined || position + bytes > this.end ? undefined : position + bytes;
  }

  /** The payload of the entry between the two positions, or undefined where its checksum does not fit. A view: valid until the next call. */
  async payload(position: number, end: number): Promise<Buffer | undefined> {
    const entry = await this.bytes(position, end - position);
    return entry.length === end - position ? payloadAt(entry, 0, entry.length) : undefined;
  }

  /** Where a whole entry with a right checksum ends that begins at `position`. */
  async endOfSound(position: number): Promise<number | undefined> {
    const end = await this.endByLength(position);
    return end !== undefined && (await this.payload(position, end)) !== undefined ? end : undefined;
  }

  /** The bytes from `position` on, fewer at the end. A view: valid until the next call. */
  async bytes(position: number, length: number): Promise<Buffer> {
    const held = this.held(position, length);
    if (held !== undefined) return held;
    const wanted = Math.min(Math.max(length, WINDOW_BYTES), this.end - position);
    this.window = await this.stores.segments.read(this.path, position, wanted);
    this.windowPosition = position;
    return this.window.subarray(0, length);
  }

  private held(position: number, length: number): Buffer | undefined {
    const at = position - this.windowPosition;
    return at >= 0 && at + length <= this.window.length ? this.window.subarray(at, at + length) : undefined;
  }
}
