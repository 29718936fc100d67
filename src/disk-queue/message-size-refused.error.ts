import { ErrorCode, MmmqError } from '../core/index.js';

/** A message is shorter or longer than the queue takes. Nothing was written. */
export class MessageSizeRefusedError extends MmmqError {
  constructor(
    readonly queue: string,
    readonly bytes: number,
    readonly minMessageBytes: number,
    readonly maxMessageBytes: number,
  ) {
    super(
      ErrorCode.REFUSED,
      `the disk queue ${queue} does not take a message of ${bytes} bytes: it must have from ${minMessageBytes} to ${maxMessageBytes} ` +
        '(options minMessageBytes and maxMessageBytes)',
    );
  }
}
