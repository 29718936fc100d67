import { ErrorCode } from '../core/index.js';
import { ProduceError } from './produce.error.js';

/**
 * Nobody here knows whether the message is stored: an attempt was written and had no answer that settles it (time-out, lost connection, a 503,
 * an answer that is not the broker's), and none of those behind it settled it either. Produce it again under the same `id`: the broker stores
 * it once, as long as it remembers the id (the last 10,000 messages of the topic, at most 64 MiB of its log).
 */
export class ProduceIndeterminateError extends ProduceError {
  constructor(
    topic: string,
    id: string,
    /** How often it was sent. */
    readonly attempts: number,
    /** What became of the last attempt. */
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(
      ErrorCode.INDETERMINATE,
      topic,
      id,
      `the message ${id} of the topic ${topic} may be stored or not (${reason}): produce it again under the same id`,
      options,
    );
  }
}
