import { Acknowledgement, ErrorCode, MmmqError } from '../core/index.js';

/** 400 breaks a rule, 409 a topic but for its case, 413 too large, 415 no JSON, 422 an id used for other content, 429 too much at once. */
export type RefusalStatus = 400 | 409 | 413 | 415 | 422 | 429;

/** A publish that was refused for what it is, and nothing of it stored. `body()` is the answer that the producer gets. */
export class PublishRefusedError extends MmmqError {
  /**
   * @param status the HTTP status of the answer
   * @param field the member or header that is to blame, where it is one
   * @param reason the rule that is broken
   */
  constructor(
    readonly status: RefusalStatus,
    readonly field: string | undefined,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(ErrorCode.REFUSED, field === undefined ? reason : `${field}: ${reason}`, options);
  }

  /** JSON: `{"acknowledgement":"NACK","field":…,"reason":…}`, without `field` where there is none. */
  body(): string {
    return JSON.stringify({ acknowledgement: Acknowledgement.NACK, field: this.field, reason: this.reason });
  }
}
