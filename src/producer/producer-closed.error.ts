import { ErrorCode } from '../core/index.js';
import { ProduceError } from './produce.error.js';

/** The producer is closing or closed, and the message is not stored. */
export class ProducerClosedError extends ProduceError {
  constructor(topic: string, id: string, options?: ErrorOptions) {
    super(
      ErrorCode.CLOSED,
      topic,
      id,
      `the message ${id} of the topic ${topic} was not sent: the producer is closed; open another one`,
      options,
    );
  }
}
