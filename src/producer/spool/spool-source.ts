import type { InFlightMessage } from '../../disk-queue/index.js';
import type { OutgoingMessage } from '../outgoing-message.js';

/** A message that was taken out of the spool and is removed only once it is dealt with. */
export interface SpooledMessage {
  readonly message: OutgoingMessage;
  /** Never rejects. */
  remove(): Promise<void>;
}

/** What stood in the spool and is no message. */
export interface UnreadableRecord {
  readonly record: Buffer;
  /** Never rejects. */
  remove(): Promise<void>;
}

/** Where the sender takes its messages from. */
export interface SpoolSource {
  /** Messages that are not removed. */
  readonly depth: number;
  /** The next one, without waiting. @throws {FileError} the disk failed to read */
  take(): Promise<SpooledMessage | UnreadableRecord | undefined>;
  /** Waits for the next one. Ends when it is closed, or with an error of the disk. */
  arrivals(): AsyncIterableIterator<InFlightMessage>;
  /** What an arrival is. Each is to be handed in once, in its order. */
  taken(inFlight: InFlightMessage): SpooledMessage | UnreadableRecord;
}
