import { ErrorCode, MmmqError } from '../core/index.js';

/** The queue, or its directory, is somebody else's. Nothing was changed. */
export class DiskQueueLockedError extends MmmqError {
  constructor(
    readonly dir: string,
    readonly queue: string,
    /** The process that has it, or nothing where it did not say. */
    readonly owner: string,
    cause?: unknown,
  ) {
    super(ErrorCode.LOCKED, messageFor(dir, queue, owner), cause === undefined ? undefined : { cause });
  }
}

function messageFor(dir: string, queue: string, owner: string): string {
  if (owner === String(process.pid))
    return `the disk queue ${queue} in ${dir} is open in this process already: use that one, or close it first`;
  return (
    `the directory ${dir} of the disk queue ${queue} is in use by another process${owner === '' ? '' : ` (${owner})`}: ` +
    'stop that one, or give this one a directory of its own (option dir)'
  );
}
