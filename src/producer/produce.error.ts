import { MmmqError, type ErrorCode } from '../core/index.js';

/** What all errors of a produce have in common: which message it was. Its subclasses say what is known of it. */
export abstract class ProduceError extends MmmqError {
  protected constructor(
    code: ErrorCode,
    readonly topic: string,
    /** The message's id, given or made. Producing again under it is what makes a repetition safe. */
    readonly id: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(code, message, options);
  }
}
