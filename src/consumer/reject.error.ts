import { ErrorCode, MmmqError } from '../core/index.js';

/**
 * Thrown by a listener that gives its message up for good: it is answered with NACK and `retry: false`, and becomes a dead letter at once.
 *
 *     throw new Reject(`there is no customer ${order.customerId}`);
 *
 * @see RetryLater for what may succeed another time
 */
export class Reject extends MmmqError {
  /** @param reason goes to the dead letter and to logs; its first 1000 characters */
  constructor(reason: string, options?: ErrorOptions) {
    super(ErrorCode.REJECTED, reason, options);
  }
}
