import { ErrorCode, InvalidValueError, MmmqError } from '../core/index.js';

/** A day; a dispatcher waits no longer than its `backoff.max-ms` in any case. */
const MAX_MS = 86_400_000;

/**
 * Thrown by a listener that cannot handle its message now: it is answered with 503 and `Retry-After`. The message comes again, uses up none of its
 * resends, and the ones behind it wait.
 *
 *     throw new RetryLater(30_000, 'the mail server is being restarted');
 *
 * The wait is in whole seconds, rounded up. The dispatcher waits at least as long as its own back-off says, and at most `backoff.max-ms`.
 */
export class RetryLater extends MmmqError {
  /**
   * @param ms milliseconds to wait, 0 to 86,400,000
   * @param reason for the logs
   * @throws {InvalidValueError} when `ms` is out of its range
   */
  constructor(
    readonly ms: number,
    reason: string = 'the listener wants the message again later',
    options?: ErrorOptions,
  ) {
    if (!(ms >= 0 && ms <= MAX_MS))
      throw new InvalidValueError('the wait of RetryLater', String(ms), `must be 0 to ${MAX_MS} milliseconds`);
    super(ErrorCode.RETRY_LATER, reason, options);
  }
}
