import { ErrorCode } from '../core/index.js';
import { ProduceError } from './produce.error.js';

/** The producer has as many bytes in memory as it may have: nothing was sent. Wait for what was produced before, then produce it again. */
export class ProducerFullError extends ProduceError {
  constructor(
    topic: string,
    id: string,
    readonly pendingMaxBytes: number,
    options?: ErrorOptions,
  ) {
    super(
      ErrorCode.PRODUCER_FULL,
      topic,
      id,
      `the message ${id} of the topic ${topic} finds no room: the messages that wait have the ${pendingMaxBytes} bytes that they may have ` +
        '(option pendingMaxBytes); wait for those before it, then produce it again',
      options,
    );
  }
}
