import type { Clock, Host, LogEntry, ReadLimits } from '../core/index.js';
import type { TopicQueue } from '../topic-queue/index.js';
import type { ConsumerClient, ConsumerReply } from './consumer-client/index.js';
import { deliveryHeaders } from './delivery-headers.js';
import { SendCounts } from './send-counts.js';
import { Stopped } from './stopped.js';
import type { Verdicts } from './verdict.js';

export interface SenderParts {
  readonly dispatcher: { readonly name: string; readonly host: Host; readonly timeoutMs: number };
  readonly topicQueue: Pick<TopicQueue, 'topic' | 'read'>;
  readonly client: ConsumerClient;
  readonly clock: Clock;
  /** Aborted as soon as nothing more may be sent. */
  readonly stopping: AbortSignal;
  /** Aborted when the attempt under way has had its time. */
  readonly aborting: AbortSignal;
}

/** An entry that cannot be sent. */
export type CorruptEntry = LogEntry & { readonly payload?: undefined };

/** What goes to the consumer in one request: `count` messages. */
export interface Parcel {
  /** Below the host. */
  readonly path: string;
  /** Beside those of every delivery. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly count: number;
  readonly maxAnswerBytes: number;
}

/** What came of a send: verdicts on so many messages, or an entry that stands in the way. */
export type Sent =
  { readonly corrupt: CorruptEntry } | { readonly corrupt?: undefined; readonly count: number; readonly verdicts: Verdicts };

/** Takes messages of one topic to a consumer: reads them, puts them into a request, and reads the verdicts out of its answer. */
export abstract class Sender {
  private readonly sends = new SendCounts();

  constructor(protected readonly parts: SenderParts) {}

  /** What is called at the host. */
  abstract readonly path: string;

  /** How often a message was sent that is not committed yet. */
  attemptsOf(offset: number): number {
    return this.sends.of(offset);
  }

  /**
   * Sends what one request takes, from the first message on that is not committed.
   * @throws {Stopped} when nothing more may be sent
   * @throws {Error} when the message cannot be read: nothing is known of it, try again
   */
  async send(offset: number): Promise<Sent> {
    const parcel = await this.parcelFrom(offset);
    if (this.parts.stopping.aborted) throw new Stopped();
    if ('corruption' in parcel) return { corrupt: parcel };
    const { count } = parcel;
    const reply = await this.post(parcel, offset, this.sends.add(offset, count));
    return { count, verdicts: this.verdictsOf(reply, count) };
  }

  /** The message alone, for its dead letter. */
  abstract read(offset: number): Promise<LogEntry>;

  /** Keeps no message in memory. */
  abstract letGo(): void;

  protected abstract parcelFrom(offset: number): Promise<Parcel | CorruptEntry>;

  protected abstract verdictsOf(reply: ConsumerReply, count: number): Verdicts;

  /** @throws {Error} when the topic queue gives another message than was asked for, which is never taken for this one */
  protected async readFrom(offset: number, limits: ReadLimits): Promise<readonly [LogEntry, ...LogEntry[]]> {
    const [first, ...others] = await this.parts.topicQueue.read(offset, limits);
    if (first?.offset !== offset) throw new Error(`offset ${offset} was asked for and ${first?.offset ?? 'nothing'} came`);
    return [first, ...others];
  }

  private async post({ path, body, maxAnswerBytes, ...parcel }: Parcel, offset: number, attempt: number): Promise<ConsumerReply> {
    const { dispatcher, topicQueue, client, aborting: signal } = this.parts;
    const { name, host, timeoutMs } = dispatcher;
    const headers = { ...deliveryHeaders({ dispatcher: name, topic: topicQueue.topic, offset, attempt }), ...parcel.headers };
    try {
      return await client.post({ host, path, headers, body, timeoutMs, maxAnswerBytes, signal });
    } catch (error) {
      // The port does not throw; an application's own implementation may. Its message could quote what was sent, so it is not logged.
      return { kind: 'failure', reason: `the consumer client threw ${error instanceof Error ? error.name : typeof error}` };
    }
  }
}
