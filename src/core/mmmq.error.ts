/** Every code that an error of this package can carry. A code never changes its meaning. */
export const ErrorCode = {
  /** A value breaks a rule: a topic, a pattern, a host, a dispatcher name, an option. The caller mends the value. */
  INVALID_VALUE: 'MMMQ_INVALID_VALUE',
  /** The settings cannot be used; the application does not start. */
  INVALID_SETTINGS: 'MMMQ_INVALID_SETTINGS',
  /** A publish was refused for what it is. Repeating it unchanged is refused again. */
  REFUSED: 'MMMQ_REFUSED',
  /** The disk has no room. Nothing of the message is left in the log; the same publish succeeds once there is room. */
  DISK_FULL: 'MMMQ_DISK_FULL',
  /** The append failed and its message may or may not be found after a restart. */
  APPEND_FAILED: 'MMMQ_APPEND_FAILED',
  /** The topic takes no appends at the moment; reading goes on. */
  TOPIC_REFUSING: 'MMMQ_TOPIC_REFUSING',
  /** The broker is stopping or stopped. */
  CLOSED: 'MMMQ_CLOSED',
  /** A producer got no verdict: the broker may have stored the message or not. Producing it again under the same id is safe. */
  INDETERMINATE: 'MMMQ_INDETERMINATE',
  /** A producer could not hand its message to the broker, and it is certainly not stored there. It can be produced again later. */
  NOT_STORED: 'MMMQ_NOT_STORED',
  /** A producer has as much in memory, or in its spool, as it may have. Nothing of the message was sent. */
  PRODUCER_FULL: 'MMMQ_PRODUCER_FULL',
  /** Files say what no crash can leave behind. */
  CORRUPT: 'MMMQ_CORRUPT',
  /** The data directory is held by another process. */
  LOCKED: 'MMMQ_LOCKED',
  /** The operating system reported an error on a file. */
  IO: 'MMMQ_IO',
  /** A listener gives its message up: it becomes a dead letter at once. */
  REJECTED: 'MMMQ_REJECTED',
  /** A listener wants its message again later. */
  RETRY_LATER: 'MMMQ_RETRY_LATER',
} as const;
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** The root of every error that this package throws on purpose: a stable `code`, a message that says what to do, and the cause. */
export class MmmqError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** A value breaks a rule. `what` names the value (`topic`, `pattern`, …) and `rule` says what it must be. */
export class InvalidValueError extends MmmqError {
  constructor(
    readonly what: string,
    readonly value: string,
    readonly rule: string,
  ) {
    super(ErrorCode.INVALID_VALUE, `${what} ${JSON.stringify(value.length > 256 ? `${value.slice(0, 256)}…` : value)}: ${rule}`);
  }
}
