import { ErrorCode, MmmqError } from '../core/index.js';

/** The queue is closing or closed. What was not confirmed comes again when it is opened the next time. */
export class DiskQueueClosedError extends MmmqError {
  constructor(readonly queue: string) {
    super(ErrorCode.CLOSED, `the disk queue ${queue} is closed: open it again to go on`);
  }
}
