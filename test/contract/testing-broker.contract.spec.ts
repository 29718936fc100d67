import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { type MessageContext, MessageListener, Reject, RetryLater } from '../../src/consumer/index.js';
import type { ConsumerFault } from '../../src/testing/index.js';
import { until } from '../support/until.js';
import { type Setting, type SettingOptions, settings } from './settings.js';

@Injectable()
class Listeners {
  readonly handled: (readonly [unknown, MessageContext])[] = [];
  act: (content: unknown, context: MessageContext) => unknown = () => undefined;

  @MessageListener('order.**')
  async onOrder(content: unknown, context: MessageContext): Promise<void> {
    this.handled.push([content, context]);
    await this.act(content, context);
  }
}

const attempts = ({ deliveries }: Setting<Listeners>): unknown[] =>
  deliveries().map(({ offset, attempt, verdict }) => [offset, attempt, verdict]);

describe.each(settings())('A broker %s', (_, openSetting) => {
  const open = (options: SettingOptions): Promise<Setting<Listeners>> => openSetting(options, Listeners);

  it('delivers each message in order, with what its producer said of it', async () => {
    const setting = await open({});
    expect(await setting.producer.produce('order.created', { n: 1.5 }, { id: 'o-1', key: '손님', headers: { tenant: 'a b' } })).toEqual({
      outcome: 'acknowledged',
      topic: 'order.created',
      offset: 0,
      id: 'o-1',
    });
    expect(await setting.producer.produce('order.created', 'second', { id: 'o-2' })).toMatchObject({ topic: 'order.created', offset: 1 });
    await setting.producer.produce('stock.moved', 'for nobody');
    await setting.drain();
    expect(setting.deliveries()).toEqual([
      {
        dispatcher: 'orders',
        topic: 'order.created',
        offset: 0,
        attempt: 1,
        content: { n: 1.5 },
        id: 'o-1',
        key: '손님',
        headers: { tenant: 'a b' },
        verdict: 'ack',
        reason: undefined,
      },
      expect.objectContaining({ offset: 1, content: 'second', id: 'o-2', key: undefined, headers: {}, verdict: 'ack' }),
    ]);
    expect(setting.listeners.handled.map(([, { topic, offset, attempt, id }]) => [topic, offset, attempt, id])).toEqual([
      ['order.created', 0, 1, 'o-1'],
      ['order.created', 1, 1, 'o-2'],
    ]);
  });

  it('stores a message once under an id, and refuses what breaks a rule', async () => {
    const setting = await open({});
    for (let time = 0; time < 2; time += 1)
      expect(await setting.producer.produce('order.created', 1, { id: 'same' })).toMatchObject({ topic: 'order.created', offset: 0 });
    await setting.drain();
    expect(setting.deliveries()).toHaveLength(1);
    await expect(setting.producer.produce('order.created', 2, { id: 'same' })).rejects.toMatchObject({ status: 422, field: 'id' });
    await expect(setting.producer.produce('order..created', 1)).rejects.toMatchObject({ status: 400, field: 'topic' });
    await expect(setting.producer.produce('dlq.orders', 1)).rejects.toMatchObject({ status: 400, field: 'topic' });
    await expect(setting.producer.produce('Order.created', 1)).rejects.toMatchObject({ status: 409, field: 'topic' });
    await expect(setting.producer.produce('order.created', 'x'.repeat(2 * 1024 * 1024))).rejects.toMatchObject({ status: 413 });
  });

  it('takes batches, of several topics too, and each message has a verdict of its own', async () => {
    const setting = await open({});
    const results = await setting.producer.produceBatch([
      { topic: 'order.created', content: 1, id: 'a' },
      { topic: 'order.created', content: 2, id: 'a' },
      { topic: 'order.created', content: 1, id: 'a' },
      { topic: 'order.paid', content: 3 },
      { topic: 'order.created', content: 4 },
    ]);
    expect(results.map(({ receipt, error }) => receipt ?? error)).toMatchObject([
      { topic: 'order.created', offset: 0 },
      { status: 422, field: 'id' },
      { topic: 'order.created', offset: 0 },
      { topic: 'order.paid', offset: 0 },
      { topic: 'order.created', offset: 1 },
    ]);
    await setting.drain();
    const delivered = setting.deliveries().map(({ topic, offset, content }) => `${topic} ${offset} ${String(content)}`);
    expect(delivered.toSorted()).toEqual(['order.created 0 1', 'order.created 1 4', 'order.paid 0 3']);
  });

  it('sends again what is refused, and keeps it as a dead letter in the end', async () => {
    const setting = await open({ maxResends: 2 });
    setting.listeners.act = (content) => {
      if (content === 'bad') throw new Error('no such customer');
    };
    await setting.producer.produce('order.created', 'bad');
    await setting.producer.produce('order.created', 'good');
    await setting.drain();
    expect(attempts(setting)).toEqual([
      [0, 1, 'nack'],
      [0, 2, 'nack'],
      [0, 3, 'nack'],
      [1, 1, 'ack'],
    ]);
    expect(await setting.deadLetters()).toEqual([
      { dispatcher: 'orders', topic: 'order.created', offset: 0, attempts: 3, reason: 'no such customer', content: 'bad' },
    ]);
  });

  it('keeps what is rejected, or has no listener, as a dead letter at once', async () => {
    const setting = await open({});
    setting.listeners.act = () => {
      throw new Reject('never');
    };
    await setting.producer.produce('order.created', 1);
    await setting.drain();
    await setting.producer.produce('mail.sent', 2);
    await setting.drain();
    expect(setting.deliveries().map(({ topic, verdict, reason }) => [topic, verdict, reason])).toEqual([
      ['order.created', 'reject', 'never'],
      ['mail.sent', 'reject', 'no listener of the consumer matches the topic mail.sent'],
    ]);
    expect((await setting.deadLetters()).map(({ topic, attempts: sent }) => [topic, sent])).toEqual([
      ['order.created', 1],
      ['mail.sent', 1],
    ]);
  });

  it('sends again what is put off, and counts no resend', async () => {
    const setting = await open({ maxResends: 0 });
    setting.listeners.act = (_content, { attempt }) => {
      if (attempt < 4) throw new RetryLater(5);
    };
    await setting.producer.produce('order.created', 1);
    await setting.drain();
    expect(attempts(setting)).toEqual([
      [0, 1, 'improper'],
      [0, 2, 'improper'],
      [0, 3, 'improper'],
      [0, 4, 'ack'],
    ]);
  });

  it.each<[ConsumerFault, number]>([
    [{ kind: 'refused' }, 1],
    [{ kind: 'timeout' }, 3],
    [{ kind: 'answerLost' }, 3],
    [{ kind: 'status', status: 500 }, 1],
    [{ kind: 'status', status: 503, retryAfterSeconds: 0 }, 1],
    [{ kind: 'garbage' }, 1],
  ])('sends again behind the fault %j, until there is a proper answer', async (fault, calls) => {
    const setting = await open({ maxResends: 0, timeoutMs: fault.kind === 'timeout' ? 1000 : 30_000 });
    setting.injectFault(fault, 2);
    const ended: boolean[] = [];
    setting.listeners.act = async (_content, { attempt, signal }) => {
      if (fault.kind === 'timeout' && attempt < 3) await until(() => signal.aborted);
      ended.push(signal.aborted);
    };
    await setting.producer.produce('order.created', 1);
    await setting.drain();
    expect(attempts(setting)).toEqual([
      [0, 1, 'improper'],
      [0, 2, 'improper'],
      [0, 3, 'ack'],
    ]);
    await until(() => ended.length === calls);
    expect(ended.slice(0, -1)).toEqual(Array.from({ length: calls - 1 }, () => fault.kind === 'timeout'));
    expect(await setting.deadLetters()).toEqual([]);
  });

  it('delivers in batches, and tries again from the first message that is not acknowledged', async () => {
    const setting = await open({ batch: { maxMessages: 10 } });
    setting.listeners.act = (content) => {
      if (content === 2) throw new Reject('never');
    };
    setting.injectFault({ kind: 'status', status: 500 });
    for (let content = 0; content < 4; content += 1) await setting.producer.produce('order.created', content);
    await setting.drain();
    const proper = setting.deliveries().filter(({ verdict }) => verdict === 'ack' || verdict === 'reject');
    expect(proper.map(({ offset, verdict }) => [offset, verdict])).toEqual([
      [0, 'ack'],
      [1, 'ack'],
      [2, 'reject'],
      [3, 'ack'],
    ]);
    expect(await setting.deadLetters()).toMatchObject([{ offset: 2, reason: 'never', content: 2 }]);
  });
});
