import { ErrorCode, MmmqError } from '../../core/index.js';
import { FileError } from '../file-system/index.js';

/**
 * A sync failed, or what a failed write left behind could not be cut away: what the files hold beyond the last good sync is unknown, and
 * a later sync that succeeds would prove nothing, because the kernel may have dropped the pages. Only re-opening through recovery helps.
 */
export class LogUntrustedError extends MmmqError {
  constructor(cause: unknown) {
    const diskFull = cause instanceof FileError && cause.isDiskFull;
    super(diskFull ? ErrorCode.DISK_FULL : ErrorCode.APPEND_FAILED, cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
