import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { IsInt } from 'class-validator';
import { type MessageContext, MessageListener, Reject, RetryLater } from '../../src/consumer/index.js';
import { type ProduceMessage, rawJson } from '../../src/producer/index.js';
import { type SettingOptions, settings } from './settings.js';

class Mail {
  @IsInt()
  readonly size!: number;
}

@Injectable()
class Listeners {
  readonly handled: (readonly [string, MessageContext])[] = [];
  act: (text: string, context: MessageContext) => unknown = () => undefined;

  @MessageListener('order.created', { raw: true })
  async onOrder(content: Buffer, context: MessageContext): Promise<void> {
    this.handled.push([content.toString(), context]);
    await this.act(content.toString(), context);
  }

  @MessageListener('mail.sent', { dto: Mail })
  onMail({ size }: Mail, context: MessageContext): void {
    this.handled.push([`size ${size}`, context]);
  }
}

const MIB = 1024 * 1024;
const TRACE = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'vendor=a b' };

const ONE_BY_ONE: SettingOptions = {};
const IN_BATCHES: SettingOptions = { batch: { maxMessages: 10 } };
const WAYS = settings().flatMap(([broker, open]) => [
  [broker, 'one by one', open, ONE_BY_ONE] as const,
  [broker, 'in batches', open, IN_BATCHES] as const,
]);

describe.each(WAYS)('Between producer, broker and consumer, %s and %s,', (_broker, _way, open, options) => {
  it('a message arrives with every byte and all that was said of it, whether it was produced alone or with others', async () => {
    const { producer, listeners, drain } = await open(options, Listeners);
    const details = { key: 'a "key" 100 % 손님 🎁', headers: { tenant: ' spaces around ', 'x-1': 'é' } };
    // Alone; as lines, behind it; and as an array, for its line break.
    const [alone, ...lines] = ['12345678901234567890.10', '{"b":1, "a":1e400,"b":2}', '"\\u0041 \\ud83d\\ude00"', 'false'];
    const array = ['[\n]', '""'];
    const message = (text: string): ProduceMessage => ({
      topic: 'order.created',
      content: rawJson(text),
      id: `id-${text.length}`,
      ...details,
    });
    await producer.produceBatch([{ ...message(alone ?? ''), ...TRACE }]);
    await producer.produceBatch(lines.map(message));
    await producer.produceBatch(array.map(message));
    await drain();
    const texts = [alone, ...lines, ...array];
    expect(listeners.handled.map(([text]) => text)).toEqual(texts);
    for (const [offset, [text, context]] of listeners.handled.entries()) {
      expect(context).toMatchObject({ topic: 'order.created', offset, dispatcher: 'orders', id: `id-${text.length}`, key: details.key });
      expect({ ...context.headers }).toEqual(details.headers);
      expect(context.timestamp).toBeGreaterThan(0);
    }
    expect(listeners.handled.map(([, { traceparent, tracestate }]) => ({ traceparent, tracestate }))).toEqual([
      TRACE,
      ...texts.slice(1).map(() => ({ traceparent: undefined, tracestate: undefined })),
    ]);
  });

  it('the largest message that a broker takes arrives, and one byte more is refused', async () => {
    const { producer, listeners, drain } = await open(options, Listeners);
    const around = JSON.stringify({ topic: 'order.created', content: '', id: 'i' }).length;
    const content = 'x'.repeat(MIB - around);
    await producer.produce('order.created', content, { id: 'i' });
    await expect(producer.produce('order.created', `${content}x`, { id: 'j' })).rejects.toMatchObject({ status: 413 });
    await drain();
    expect(listeners.handled.map(([text]) => text === JSON.stringify(content))).toEqual([true]);
  });

  it.each<[string, () => unknown, { verdict: string; reason: string }]>([
    ['an error', () => new Error('no such customer'), { verdict: 'nack', reason: 'no such customer' }],
    ['an error that says nothing', () => new Error(''), { verdict: 'nack', reason: 'Error' }],
    ['no error at all', () => 7, { verdict: 'nack', reason: '7' }],
    ['a reason that would break a log', () => new Error('a\r\nb\u2028\ud800"'), { verdict: 'nack', reason: 'a  b  "' }],
    ['a reason without end', () => new Error('🎁'.repeat(5000)), { verdict: 'nack', reason: '🎁'.repeat(1000) }],
    ['Reject', () => new Reject('never "this" one'), { verdict: 'reject', reason: 'never "this" one' }],
  ])('what a listener throws is what the dispatcher understands: %s', async (_what, error, { verdict, reason }) => {
    const { producer, listeners, drain, deliveries, deadLetters } = await open({ ...options, maxResends: 1 }, Listeners);
    listeners.act = (text) => {
      if (text === '2') throw error();
    };
    await producer.produceBatch([1, 2, 3].map((content) => ({ topic: 'order.created', content })));
    await drain();
    const spoken = deliveries().filter(({ verdict: each }) => each !== 'none');
    const refusals = verdict === 'reject' ? 1 : 2;
    expect(spoken.map(({ offset, verdict: each, reason: why }) => [offset, each, why])).toEqual([
      [0, 'ack', undefined],
      ...Array.from({ length: refusals }, () => [1, verdict, reason]),
      [2, 'ack', undefined],
    ]);
    expect(await deadLetters()).toMatchObject([{ topic: 'order.created', offset: 1, attempts: refusals, reason, content: 2 }]);
  });

  it('content that breaks its rules, and a topic without a listener, are given up at once, with the reason', async () => {
    const { producer, drain, deadLetters } = await open(options, Listeners);
    await producer.produce('mail.sent', { size: 1.5 });
    await drain();
    await producer.produce('mail.lost', { size: 1 });
    await drain();
    expect(await deadLetters()).toMatchObject([
      { topic: 'mail.sent', attempts: 1, reason: 'content: size: size must be an integer number' },
      { topic: 'mail.lost', attempts: 1, reason: 'no listener of the consumer matches the topic mail.lost' },
    ]);
  });

  it('a message that is put off comes again as often as it takes, in its place, and uses up no resend', async () => {
    const { producer, listeners, drain, deadLetters } = await open({ ...options, maxResends: 0 }, Listeners);
    let left = 3;
    listeners.act = (text) => {
      if (text === '2' && left-- > 0) throw new RetryLater(1);
    };
    await producer.produceBatch([1, 2, 3].map((content) => ({ topic: 'order.created', content })));
    await drain();
    expect(listeners.handled.map(([text]) => text)).toEqual(['1', '2', '2', '2', '2', '3']);
    expect(await deadLetters()).toEqual([]);
  });
});
