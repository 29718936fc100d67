import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { SILENT } from '../../test/support/broker-application.js';
import { Gate } from '../../test/support/gate.js';
import { until } from '../../test/support/until.js';
import { ConsumerModule, type MessageContext, MessageListener, RetryLater } from '../consumer/index.js';
import { Producer, ProducerModule } from '../producer/index.js';
import { TestingBroker, type TestingDispatcher } from './testing.broker.js';

@Injectable()
class Orders {
  readonly handled: unknown[] = [];
  act: (context: MessageContext) => unknown = () => undefined;

  @MessageListener('order.**')
  async onOrder(content: unknown, context: MessageContext): Promise<void> {
    this.handled.push(content);
    await this.act(context);
  }
}

let broker: TestingBroker;
let modules: TestingModule[];

beforeEach(async () => {
  broker = await TestingBroker.start();
  modules = [];
});
afterEach(async () => {
  for (const module of modules) await module.close();
  await broker.close();
});

async function open(dispatchers?: readonly TestingDispatcher[], isInitialised = true): Promise<Orders> {
  const builder = Test.createTestingModule({ imports: [ConsumerModule.forRoot()], providers: [Orders] }).setLogger(SILENT);
  const module = await broker.compile(builder, dispatchers);
  modules.push(module);
  if (isInitialised) await module.init();
  return module.get(Orders);
}

describe('TestingBroker', () => {
  it('delivers everything to an application by default, also what was produced before it', async () => {
    await broker.produce('order.created', 1);
    const orders = await open();
    await broker.produce('order.paid', 2);
    await broker.drain();
    expect(orders.handled.toSorted()).toEqual([1, 2]);
    expect(broker.topics).toEqual(['order.created', 'order.paid']);
    expect(broker.messages('order.paid')).toEqual([{ offset: 0, topic: 'order.paid', content: 2, timestamp: broker.clock.now() }]);
    expect(broker.messages('no.such')).toEqual([]);
  });

  it('lets hours of back-off pass at once, by its own clock alone', async () => {
    const orders = await open([{ name: 'orders', patterns: ['**'], backoff: { initialMs: 3_600_000, maxMs: 36_000_000 } }]);
    orders.act = ({ attempt }) => {
      if (attempt < 5) throw new RetryLater(0);
    };
    const before = broker.clock.now();
    await broker.produce('order.created', 1);
    await broker.drain();
    expect(orders.handled).toHaveLength(5);
    expect(broker.clock.now() - before).toBe(15 * 3_600_000);
  });

  it('moves on only as far as it is told outside of a drain', async () => {
    const orders = await open();
    broker.injectFault({ kind: 'refused' });
    await broker.produce('order.created', 1);
    await broker.settle();
    broker.clock.advance(999);
    await broker.settle();
    expect(orders.handled).toEqual([]);
    broker.clock.advance(1);
    await until(() => orders.handled.length === 1);
  });

  it('ends the time of an attempt by its clock', async () => {
    const orders = await open([{ name: 'orders', patterns: ['**'], timeoutMs: 30_000 }]);
    const signals: AbortSignal[] = [];
    orders.act = async ({ signal, attempt }) => {
      signals.push(signal);
      if (attempt === 1) await until(() => signal.aborted);
    };
    await broker.produce('order.created', 1);
    await until(() => signals.length === 1);
    broker.clock.advance(30_000);
    await broker.drain();
    expect(broker.deliveries).toMatchObject([{ verdict: 'improper', reason: 'no answer within 30000 ms' }, { verdict: 'ack' }]);
  });

  it('lets faults come for one topic alone, as often as it is told', async () => {
    await open();
    broker.injectFault({ kind: 'garbage' }, { times: 2, topic: 'order.*' });
    await broker.produce('stock.moved', 1);
    await broker.produce('order.created', 1);
    await broker.drain();
    const verdicts = broker.deliveries.map(({ topic, verdict }) => `${topic} ${verdict}`);
    expect(verdicts.filter((text) => text.startsWith('order'))).toEqual([
      'order.created improper',
      'order.created improper',
      'order.created ack',
    ]);
    expect(() => broker.injectFault({ kind: 'garbage' }, { times: 0 })).toThrow(/the option times/);
    expect(() => broker.injectFault({ kind: 'timeuot' as 'timeout' })).toThrow(
      /the kind of a fault "timeuot": must be one of refused, timeout/,
    );
    expect(() => broker.injectFault({ kind: 'garbage' }, { topic: '..' })).toThrow(/pattern/);
  });

  it('does not drain for ever: it says what has no verdict', async () => {
    const orders = await open();
    orders.act = () => {
      throw new RetryLater(0, 'not now');
    };
    await broker.produce('order.created', 1);
    await expect(broker.drain({ maxAttempts: 7 })).rejects.toThrow(/dispatcher testing, topic order\.created, offset 0: sent 7 times/);
  });

  it('lets time pass between deliveries, so that a test of a listener that never comes to an end comes to its own', async () => {
    const orders = await open();
    orders.act = async () => {
      if (orders.handled.length < 1000) await broker.produce('order.created', 'again');
    };
    await broker.produce('order.created', 'first');
    const drained = broker.drain();
    await setImmediate();
    expect(orders.handled.length).toBeLessThan(10);
    await broker.close();
    await drained;
    expect(orders.handled.length).toBeLessThan(1000);
    broker = await TestingBroker.start();
  });

  it('refuses dispatchers of an application that has no consumer, as nothing would be delivered', async () => {
    const builder = Test.createTestingModule({}).setLogger(SILENT);
    await expect(broker.compile(builder, [{ name: 'mailer', patterns: ['**'] }])).rejects.toThrow(
      /the dispatcher mailer .*no ConsumerModule/,
    );
    modules.push(await broker.compile(builder, []), await broker.compile(builder));
  });

  it('says so of an application that is not initialised', async () => {
    await open(undefined, false);
    await broker.produce('order.created', 1);
    await expect(broker.drain()).rejects.toThrow(/the application of the dispatcher testing does not listen: initialise it first/);
  });

  it('serves several applications, each with dispatchers of its own', async () => {
    const first = await open([{ name: 'first', patterns: ['order.created'] }]);
    const second = await open([{ name: 'second', patterns: ['order.*'] }]);
    await broker.produce('order.created', 1);
    await broker.produce('order.paid', 2);
    await broker.drain();
    expect([first.handled, second.handled.toSorted()]).toEqual([[1], [1, 2]]);
    await expect(open([{ name: 'First', patterns: ['**'] }])).rejects.toThrow(/has a dispatcher First already/);
    await expect(open([{ name: 'third', patterns: ['..'] }])).rejects.toThrow(/pattern/);
  });

  it('gets what the producer of an application produces, alone and in batches, and what that is refused', async () => {
    const builder = Test.createTestingModule({
      imports: [ProducerModule.forRoot({ broker: 'http://broker:8080', spool: { dir: '/nowhere' } }), ConsumerModule.forRoot()],
      providers: [Orders],
    }).setLogger(SILENT);
    const module = await broker.compile(builder);
    modules.push(module);
    await module.init();
    const producer = module.get(Producer);
    expect(await producer.produce('order.created', 1, { id: 'o-1', key: 'k', headers: { tenant: 'a' } })).toEqual({
      outcome: 'acknowledged',
      topic: 'order.created',
      offset: 0,
      id: 'o-1',
    });
    const results = await producer.produceBatch([
      { topic: 'order.created', content: 1, id: 'o-1' },
      { topic: 'order.created', content: 2, id: 'o-1' },
      { topic: 'order.created', content: 3 },
    ]);
    expect(results.map((result) => [result.receipt?.outcome, result.error])).toMatchObject([
      ['acknowledged', undefined],
      [undefined, { status: 422, field: 'id' }],
      ['acknowledged', undefined],
    ]);
    await broker.drain();
    expect(module.get(Orders).handled).toEqual([1, 3]);
    expect(broker.deliveries[0]).toMatchObject({ id: 'o-1', key: 'k', headers: { tenant: 'a' } });
    const tooLarge = producer.produce('order.created', 'x'.repeat(2 * 1024 * 1024));
    await expect(tooLarge).rejects.toMatchObject({ status: 413 });
  });

  it('waits as long as a listener asks for, by the clock', async () => {
    const orders = await open();
    orders.act = ({ attempt }) => {
      if (attempt === 1) throw new RetryLater(30_000);
    };
    const before = broker.clock.now();
    await broker.produce('order.created', 1);
    await broker.drain();
    expect(broker.clock.now() - before).toBe(30_000);
    expect(broker.deliveries).toMatchObject([{ verdict: 'improper' }, { verdict: 'ack' }]);
  });

  it('delivers what listeners produce in turn', async () => {
    const orders = await open();
    orders.act = async ({ topic }) => {
      if (topic === 'order.created') await broker.produce('order.paid', 'in turn');
    };
    await broker.produce('order.created', 'first');
    await broker.drain();
    expect(orders.handled).toEqual(['first', 'in turn']);
  });

  it('closes though a listener never comes to its end', async () => {
    const orders = await open();
    const gate = new Gate();
    orders.act = () => gate.opened;
    await broker.produce('order.created', 1);
    await until(() => orders.handled.length === 1);
    await broker.close();
    gate.open();
    broker = await TestingBroker.start();
  });

  it('waits for listeners that take their time', async () => {
    const orders = await open();
    const gate = new Gate();
    orders.act = () => gate.opened;
    await broker.produce('order.created', 1);
    let isDrained = false;
    const drained = broker.drain().then(() => (isDrained = true));
    await until(() => orders.handled.length === 1);
    expect(isDrained).toBe(false);
    gate.open();
    await drained;
  });
});
