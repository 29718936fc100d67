import { ErrorCode } from '../core/index.js';
import { ProduceError } from './produce.error.js';

/** What a refusal says. */
export interface Refusal {
  /** The HTTP status; 400 as well where the message was refused here, before anything was sent. */
  readonly status: number;
  /** The member of the message that is to blame, where it is one. */
  readonly field?: string | undefined;
  readonly reason: string;
}

/** The message was refused for good, and is not stored. Repeating it unchanged is refused again. */
export class ProduceRefusedError extends ProduceError {
  readonly status: number;
  readonly field: string | undefined;
  readonly reason: string;

  constructor(topic: string, id: string, { status, field, reason }: Refusal, options?: ErrorOptions) {
    super(
      ErrorCode.REFUSED,
      topic,
      id,
      `the message ${id} of the topic ${topic} is refused with ${status}: ${field === undefined ? '' : `${field}: `}${reason}`,
      options,
    );
    this.status = status;
    this.field = field;
    this.reason = reason;
  }
}
