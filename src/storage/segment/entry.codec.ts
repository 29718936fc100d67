import { crc32c } from '@node-rs/crc32';
import { ENTRY_HEADER_BYTES, PASS_MAX_BYTES } from '../../core/index.js';

/*
 * An entry in a segment file, big-endian:
 *
 *   0        4        8
 *   ┌────────┬────────┬──────────────────────┐
 *   │ length │ CRC32C │ payload, never empty │    length = 4 + payload bytes; the checksum covers the payload
 *   └────────┴────────┴──────────────────────┘
 */
const CRC_BYTES = 4;

/** No entry is larger than the largest pass: a length beyond this is no length, and no memory is reserved for it. */
export const MAX_ENTRY_BYTES = PASS_MAX_BYTES;

/** How many bytes of the log a payload takes. */
export function entryBytes(payload: Buffer): number {
  return ENTRY_HEADER_BYTES + payload.length;
}

/** All entries of a pass in one buffer, and the byte position in the segment at which each begins. */
export function encodeEntries(payloads: readonly Buffer[], firstPosition: number): { bytes: Buffer; positions: number[] } {
  const bytes = Buffer.allocUnsafe(payloads.reduce((sum, payload) => sum + entryBytes(payload), 0));
  const positions: number[] = [];
  let at = 0;
  for (const payload of payloads) {
    positions.push(firstPosition + at);
    bytes.writeInt32BE(CRC_BYTES + payload.length, at);
    bytes.writeUInt32BE(crc32c(payload), at + 4);
    payload.copy(bytes, at + ENTRY_HEADER_BYTES);
    at += entryBytes(payload);
  }
  return { bytes, positions };
}

/**
 * The bytes that the entry whose header stands at `at` takes in all, or undefined where its length cannot be right: too small for a
 * payload, or larger than any entry. Eight bytes must be there.
 */
export function entryBytesAt(header: Buffer, at: number): number | undefined {
  const bytes = header.readInt32BE(at) + ENTRY_HEADER_BYTES - CRC_BYTES;
  return bytes > ENTRY_HEADER_BYTES && bytes <= MAX_ENTRY_BYTES ? bytes : undefined;
}

/** The checksum that the header at `at` holds. */
export function checksumAt(header: Buffer, at: number): number {
  return header.readUInt32BE(at + CRC_BYTES);
}

/** The checksum of a payload that comes in parts. @param checksum of the parts before, 0 in front of the first */
export function continuedChecksum(checksum: number, part: Buffer): number {
  return crc32c(part, checksum);
}

/** The payload of the whole entry at `at`, a view into `buffer`, or undefined where its checksum does not fit. */
export function payloadAt(buffer: Buffer, at: number, bytes: number): Buffer | undefined {
  const payload = buffer.subarray(at + ENTRY_HEADER_BYTES, at + bytes);
  return crc32c(payload) === checksumAt(buffer, at) ? payload : undefined;
}
