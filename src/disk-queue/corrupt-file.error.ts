import { ErrorCode, MmmqError } from '../core/index.js';

/** A data file of a queue cannot be read on from `position`. Inside the queue only: the file is set aside and the reader goes on. */
export class CorruptFileError extends MmmqError {
  constructor(
    readonly path: string,
    readonly position: number,
    reason: string,
    cause?: unknown,
  ) {
    super(ErrorCode.CORRUPT, `${path} cannot be read on from position ${position}: ${reason}`, cause === undefined ? undefined : { cause });
  }
}
