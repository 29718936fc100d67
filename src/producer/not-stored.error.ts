import { ErrorCode } from '../core/index.js';
import { ProduceError } from './produce.error.js';

/**
 * The broker could not be reached, or had no room (429, 507), until the deadline: the message is certainly not stored. It can be produced again
 * later.
 */
export class NotStoredError extends ProduceError {
  constructor(
    topic: string,
    id: string,
    /** How often it was tried; 0 where it has only waited. */
    readonly attempts: number,
    /** What became of the last attempt. */
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(
      ErrorCode.NOT_STORED,
      topic,
      id,
      `the message ${id} of the topic ${topic} is not stored: ${reason}; produce it again later`,
      options,
    );
  }
}
