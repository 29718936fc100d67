import { ErrorCode, MmmqError } from '../../core/index.js';

/** There is no answer to a request. `written` is false only where it is certain that no byte of the request has left. */
export class TransportError extends MmmqError {
  constructor(
    /** Words for a log: nothing of what was sent, and no credentials. */
    readonly reason: string,
    readonly written: boolean,
    options?: ErrorOptions,
  ) {
    super(written ? ErrorCode.INDETERMINATE : ErrorCode.NOT_STORED, reason, options);
  }
}
