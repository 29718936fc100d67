/** A message that something has become of. */
export interface MessageEvent {
  readonly topic: string;
  readonly id: string;
  /** Who has sent it: the call, or the spool. */
  readonly source: 'produce' | 'spool';
}

export interface AcknowledgedEvent extends MessageEvent {
  readonly offset: number;
}

export interface RefusedEvent extends MessageEvent {
  /** The HTTP status. */
  readonly status: number;
}

export interface FailedEvent extends MessageEvent {
  readonly reason: string;
}

/**
 * Hears what becomes of the messages, for metrics: one method for each event, all optional. Called at once, so it should be quick; what it
 * throws is logged once and breaks nothing.
 */
export interface ProducerObserver {
  acknowledged?(event: AcknowledgedEvent): void;
  /** It is in the spool, for this reason. */
  spooled?(event: FailedEvent): void;
  /** For good: the produce has failed, or the message is in the dead file. */
  refused?(event: RefusedEvent): void;
  /** The produce has failed, and nobody knows whether the message is stored. */
  indeterminate?(event: FailedEvent): void;
  /** The produce has failed, and the message is certainly not stored. */
  notStored?(event: FailedEvent): void;
  /** An attempt came to nothing, and there will be another one. */
  repeated?(event: FailedEvent): void;
  /** So many messages are in the spool now. */
  spoolDepth?(depth: number): void;
}
