import { FileError } from './file.error.js';
import type { File } from './file-system.port.js';

/** Writes all of the bytes, going on where a write was short. */
export async function writeFully(file: File, bytes: Buffer, position: number): Promise<void> {
  let written = 0;
  while (written < bytes.length) {
    const count = await file.write(written === 0 ? bytes : bytes.subarray(written), position + written);
    // A write that neither fails nor moves would be asked for again for ever.
    if (count <= 0) throw new FileError('write', file.path, 'no progress');
    written += count;
  }
}

/** Fills the buffer, going on where a read was short. @returns the bytes read, fewer than the buffer holds only at the end of the file */
export async function readFully(file: File, buffer: Buffer, position: number): Promise<number> {
  let filled = 0;
  while (filled < buffer.length) {
    const count = await file.read(filled === 0 ? buffer : buffer.subarray(filled), position + filled);
    if (count <= 0) break;
    filled += count;
  }
  return filled;
}
