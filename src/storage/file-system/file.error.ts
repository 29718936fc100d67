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
    const errno = typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : String(cause);
    return new FileError(operation, path, errno, cause);
  }

  get isDiskFull(): boolean {
    return this.code === ErrorCode.DISK_FULL;
  }

  get isMissing(): boolean {
    return this.errno === 'ENOENT';
  }
}
