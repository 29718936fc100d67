import type { ConsumerReply, ConsumerRequest } from './consumer-client.port.js';
import { FailureReason } from './failure-reason.js';

/**
 * One attempt, from its start to its only outcome: an answer read to its end, or a failure. It keeps the bounds that every client owes: the
 * one deadline, the size of the answer, and the broker's stop. A client feeds it with what it reads; what comes after the outcome is ignored.
 */
export class Attempt {
  readonly reply: Promise<ConsumerReply>;
  private resolve!: (reply: ConsumerReply) => void;
  private settled = false;
  private readonly timer: NodeJS.Timeout;
  private status = 0;
  private retryAfter: string | undefined;
  private chunks: Buffer[] = [];
  private bytes = 0;

  /** @param free called once, with the outcome: the connection can be used again only when the answer was read to its end */
  constructor(
    private readonly request: ConsumerRequest,
    private readonly free: (readToItsEnd: boolean) => void,
  ) {
    this.reply = new Promise((resolve) => (this.resolve = resolve));
    this.timer = setTimeout(() => this.fail(FailureReason.noAnswerWithin(request.timeoutMs)), request.timeoutMs);
    request.signal.addEventListener('abort', this.onStop);
  }

  get isSettled(): boolean {
    return this.settled;
  }

  /** Status and headers are there. An answer that announces too much ends at once, before its body is read. */
  begin(status: number, headers: AnswerHeaders): void {
    this.status = status;
    this.retryAfter = first(headers['retry-after']);
    if (Number(first(headers['content-length'])) > this.request.maxAnswerBytes) this.failAsTooLarge();
  }

  /** Takes the chunk as it is, without a copy. */
  receive(chunk: Buffer): void {
    if (this.settled) return;
    this.bytes += chunk.length;
    if (this.bytes > this.request.maxAnswerBytes) this.failAsTooLarge();
    else this.chunks.push(chunk);
  }

  end(): void {
    const [only] = this.chunks;
    const body = only !== undefined && this.chunks.length === 1 ? only : Buffer.concat(this.chunks);
    this.settle({ kind: 'answer', status: this.status, body, retryAfter: this.retryAfter });
  }

  fail(reason: string): void {
    this.settle({ kind: 'failure', reason });
  }

  private failAsTooLarge(): void {
    this.fail(FailureReason.answerLargerThan(this.request.maxAnswerBytes));
  }

  private readonly onStop = (): void => this.fail(FailureReason.stopping);

  private settle(reply: ConsumerReply): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.timer);
    this.request.signal.removeEventListener('abort', this.onStop);
    this.chunks = [];
    this.free(reply.kind === 'answer');
    this.resolve(reply);
  }
}

/** Lower-case names, as undici and node:http both give them. */
export interface AnswerHeaders {
  readonly 'content-length'?: string | string[] | undefined;
  readonly 'retry-after'?: string | string[] | undefined;
}

function first(value: string | string[] | undefined): string | undefined {
  return typeof value === 'object' ? value[0] : value;
}
