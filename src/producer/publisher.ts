import type { Clock } from '../core/index.js';
import type { BatchLimits } from './next-batch.js';
import type { OutgoingMessage } from './outgoing-message.js';
import { TransportError, type ProducerTransport, type TransportRequest } from './transport/index.js';
import { verdictsOf, type Verdict } from './verdict.js';

const LINE_FEED = 0x0a;
const COMMA = Buffer.from(',');
const LINE_END = Buffer.from('\n');

export interface PublisherSettings {
  /** One attempt, from connect to the last byte of the answer, in milliseconds. */
  readonly timeoutMs: number;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly batch: BatchLimits;
}

/** One attempt to publish messages: the request, its time, and what the answer says of each. It repeats nothing and never throws. */
export class Publisher {
  /** The broker may take less than the option says: halved when a batch is too much for it, and grown again by one with each that is not. */
  private maxMessages: number;

  constructor(
    private readonly transport: ProducerTransport,
    private readonly settings: PublisherSettings,
    private readonly clock: Clock,
  ) {
    this.maxMessages = settings.batch.maxMessages;
  }

  get limits(): BatchLimits {
    return { maxMessages: this.maxMessages, maxBytes: this.settings.batch.maxBytes };
  }

  /**
   * @param messages one at least; all of one trace
   * @param signal ends the attempt early
   * @returns one verdict for each, in order
   */
  async publish(messages: readonly OutgoingMessage[], signal: AbortSignal): Promise<readonly Verdict[]> {
    const { timeoutMs } = this.settings;
    const end = new AbortController();
    const onAbort = (): void => end.abort();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      end.abort();
    }, timeoutMs);
    if (signal.aborted) end.abort();
    signal.addEventListener('abort', onAbort);
    try {
      const answer = await this.transport.send({ ...this.requestOf(messages), signal: end.signal });
      const topics = messages.map(({ topic }) => topic);
      const verdicts = verdictsOf(answer, topics, this.clock.now());
      this.learn(messages.length, answer.status, verdicts);
      return verdicts;
    } catch (error) {
      const known = error instanceof TransportError ? error : undefined;
      const reason = isLate ? `no answer within ${timeoutMs} ms` : (known?.reason ?? 'the request failed');
      const verdict = { kind: 'unsettled', mayBeStored: known?.written ?? true, reason, retryAfterMs: 0 } as const;
      return messages.map(() => verdict);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    }
  }

  private learn(count: number, status: number, [verdict]: readonly Verdict[]): void {
    const isTooMuch = count > 1 && (verdict?.kind === 'apart' || status === 429);
    if (isTooMuch) this.maxMessages = Math.ceil(count / 2);
    else if (count >= this.maxMessages && this.maxMessages < this.settings.batch.maxMessages) this.maxMessages += 1;
  }

  private requestOf(messages: readonly OutgoingMessage[]): Omit<TransportRequest, 'signal'> {
    const [{ body, trace }] = messages as readonly [OutgoingMessage, ...OutgoingMessage[]];
    const headers = { ...this.settings.headers, ...trace };
    if (messages.length === 1) return { path: '/messages', headers: { ...headers, 'content-type': 'application/json' }, body };
    // Encoded content may have a line feed between its tokens: then the batch is an array.
    const isArray = messages.some((message) => message.body.includes(LINE_FEED));
    const parts = messages.flatMap((message, place) => [place === 0 ? Buffer.alloc(0) : isArray ? COMMA : LINE_END, message.body]);
    return {
      path: '/messages/batch',
      headers: { ...headers, 'content-type': isArray ? 'application/json' : 'application/x-ndjson' },
      body: isArray ? Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')]) : Buffer.concat(parts),
    };
  }
}
