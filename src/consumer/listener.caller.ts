import { Logger } from '@nestjs/common';
import { type ConsumerSettings, NoListener } from './consumer.options.js';
import { readContent } from './content.reader.js';
import { type Delivery, readMessage, type ReadMessage } from './delivery.reader.js';
import type { Listener } from './listener.js';
import type { ListenerTable } from './listener.table.js';
import type { MessageContext } from './message-context.js';
import { RetryLater } from './retry-later.error.js';
import { readable, stackOf, type Verdict, verdictOf } from './verdict.js';

const ACK: Verdict = { kind: 'ack' };

/** Hands messages to their listeners and makes verdicts of what comes of it. */
export class ListenerCaller {
  private readonly logger = new Logger('Consumer');

  constructor(
    private readonly listeners: ListenerTable,
    private readonly settings: Pick<ConsumerSettings, 'noListener' | 'deduplication'>,
  ) {}

  /**
   * Never throws for what a listener does.
   * @param index of the message in the delivery
   * @throws {DeliveryRefused} when it is no message
   */
  async handle(delivery: Delivery, index: number, signal: AbortSignal): Promise<Verdict> {
    const message = readMessage(delivery.messages[index] as Buffer);
    const context = contextOf(delivery, index, message, signal);
    const listener = this.listeners.listenerFor(delivery.topic);
    if (listener === undefined) return this.withoutListener(context);
    return await this.callOnce(listener, message, context);
  }

  private withoutListener(context: MessageContext): Verdict {
    const reason = `no listener of the consumer matches the topic ${context.topic}`;
    switch (this.settings.noListener) {
      case NoListener.ACKNOWLEDGE:
        return ACK;
      case NoListener.RETRY:
        this.logger.warn(`${at(context)}: ${reason}; it will come again`);
        return { kind: 'later', reason };
      default:
        this.logger.warn(`${at(context)}: ${reason}; it is rejected`);
        return { kind: 'nack', retry: false, reason };
    }
  }

  private async callOnce(listener: Listener, message: ReadMessage, context: MessageContext): Promise<Verdict> {
    const { deduplication } = this.settings;
    if (deduplication === undefined) return await this.call(listener, message, context);
    let verdict: Verdict | undefined;
    const work = async (): Promise<void> => {
      verdict = await this.call(listener, message, context);
      // Work that has not succeeded is not to be remembered.
      if (verdict.kind !== 'ack') throw new Error(verdict.reason);
    };
    try {
      await deduplication.once(workIdOf(context), work);
      // A store that keeps the failure of the work to itself cannot make an ACK of it.
      return verdict ?? ACK;
    } catch (error) {
      if (verdict !== undefined && verdict.kind !== 'ack') return verdict;
      // The listener has not failed, but whether it may be called, or will be remembered, is not known: that costs none of the resends.
      this.logger.error(`${at(context)}: the de-duplication failed`, stackOf(readable(error)));
      return { kind: 'later', reason: 'the de-duplication of the consumer failed' };
    }
  }

  private async call(listener: Listener, message: ReadMessage, context: MessageContext): Promise<Verdict> {
    try {
      const content = await readContent(message.content, listener.options);
      // It may have waited long by now, for the same message to be handled by another request.
      context.signal.throwIfAborted();
      await listener.call(content, context);
      return ACK;
    } catch (thrown) {
      const error = readable(thrown);
      const verdict = verdictOf(error, context.signal);
      this.tell(`${at(context)}: ${listener.name}`, verdict, error);
      return verdict;
    }
  }

  private tell(what: string, verdict: Verdict, error: unknown): void {
    if (verdict.kind === 'ack') return;
    const { reason } = verdict;
    if (verdict.kind === 'later')
      this.logger.warn(`${what} ${error instanceof RetryLater ? 'puts it off' : 'was not finished in time'}: ${reason}`);
    else if (verdict.retry) this.logger.error(`${what} failed: ${reason}`, stackOf(error));
    else this.logger.warn(`${what} rejects it: ${reason}`);
  }
}

function contextOf(
  { topic, offset, attempt, dispatcher }: Delivery,
  index: number,
  message: ReadMessage,
  signal: AbortSignal,
): MessageContext {
  const { id, key, headers = [], timestamp, traceparent, tracestate } = message;
  const ownHeaders = Object.create(null) as Record<string, string>;
  for (const [name, value] of headers) ownHeaders[name] = value;
  return { topic, offset: offset + index, attempt, dispatcher, id, key, headers: ownHeaders, timestamp, traceparent, tracestate, signal };
}

/** A dispatcher, a topic and an id have no slashes. */
function workIdOf({ dispatcher, topic, offset, id }: MessageContext): string {
  return `${dispatcher}/${topic}/${id === undefined ? `offset=${offset}` : `id=${id}`}`;
}

/** Which message it is, for the log; never what it says. */
function at({ dispatcher, topic, offset, attempt }: MessageContext): string {
  return `dispatcher ${dispatcher}, topic ${topic}, offset ${offset}, attempt ${attempt}`;
}
