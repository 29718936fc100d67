import { constants } from 'node:os';
import { ErrorCode, MmmqError } from '../../core/index.js';

/** What the operating system says when the disk, or the share of it that we may use, is full. */
const DISK_FULL_ERRNOS: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);

/** The operating system refused an operation on a file. */
export class FileError extends MmmqError {
  constructor(
    readonly operation: string,
    readonly path: string,
    /** The operating system's code, such as ENOSPC or EIO. */
    readonly errno: string,
    cause?: unknown,
  ) {
    super(
      DISK_FULL_ERRNOS.has(errno) ? ErrorCode.DISK_FULL : ErrorCode.IO,
      `${operation} failed on ${path}: ${errno}`,
      cause === undefined ? undefined : { cause },
    );
  }

  static from(operation: string, path: string, cause: unknown): FileError {
    return new FileError(operation, path, codeOf(cause), cause);
  }

  get isDiskFull(): boolean {
    return this.code === ErrorCode.DISK_FULL;
  }

  get isMissing(): boolean {
    return this.errno === 'ENOENT';
  }
}

/** Node has no code for some errors, a quota that is used up among them, and gives their number alone. */
function codeOf(cause: unknown): string {
  if (typeof cause !== 'object' || cause === null || !('code' in cause)) return String(cause);
  const code = String(cause.code);
  if (/^E[A-Z0-9]+$/.test(code) || !('errno' in cause)) return code;
  return Object.entries(constants.errno).find(([, number]) => number === -Number(cause.errno))?.[0] ?? code;
}
