import { afterEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, type ExecutionContext, type INestApplication, Injectable, ValidationPipe } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { IsInt } from 'class-validator';
import request from 'supertest';
import {
  type ConsumerModuleOptions,
  InMemoryDeduplication,
  type MessageContext,
  MessageListener,
  Reject,
  RetryLater,
} from '../../src/consumer/index.js';
import { Dispatcher, type DispatcherOptions, DispatcherRegistry, Host, TopicPattern } from '../../src/index.js';
import { brokerApplication } from '../support/broker-application.js';
import { consumerApplication, type ConsumerApplicationOptions } from '../support/consumer-application.js';
import { fileEngine, readTexts } from '../support/file-engine.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

class Payment {
  @IsInt()
  amount!: number;
}

type Handled = readonly [content: unknown, context: MessageContext];

/** Does what the test says. */
@Injectable()
class Listeners {
  readonly handled: Handled[] = [];
  act: (content: unknown, context: MessageContext) => unknown = () => undefined;

  @MessageListener('order.**')
  async onOrder(content: unknown, context: MessageContext): Promise<void> {
    this.handled.push([content, context]);
    await this.act(content, context);
  }

  @MessageListener('payment.*', { dto: Payment })
  onPayment(content: Payment, context: MessageContext): void {
    this.handled.push([content, context]);
  }
}

const newDirectory = temporaryDirectories();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

interface Shop {
  readonly listeners: Listeners;
  readonly broker: INestApplication;
  readonly rootDir: string;
  readonly stopBroker: () => Promise<void>;
  readonly consumerPort: number;
}

/** A broker and a consumer in two applications, over real sockets. @param base what stands in front of the consumer's `/messages` */
async function open(
  dispatcher: DispatcherOptions = {},
  consumer: ConsumerModuleOptions = {},
  base = '',
  application: Pick<ConsumerApplicationOptions, 'adapter' | 'configure'> = {},
): Promise<Shop> {
  const rootDir = await newDirectory();
  const consuming = await consumerApplication({ ...application, consumer, metadata: { providers: [Listeners] } });
  stops.push(() => consuming.app.close());
  const options: DispatcherOptions = { backoff: { initialMs: 5, maxMs: 20 }, ...dispatcher };
  const value = new Dispatcher(
    'orders',
    Host.of(`${consuming.url}${base}`),
    [TopicPattern.of('order.**'), TopicPattern.of('payment.*')],
    options,
  );
  const { app: broker } = await brokerApplication({
    broker: { storage: { rootDir } },
    metadata: { providers: [{ provide: 'orders', useValue: value }] },
  });
  let closed: Promise<void> | undefined;
  const stopBroker = (): Promise<void> => (closed ??= broker.close());
  stops.push(stopBroker);
  return { listeners: consuming.app.get(Listeners), broker, rootDir, stopBroker, consumerPort: consuming.port };
}

async function publish({ broker }: Shop, topic: string, ...contents: unknown[]): Promise<void> {
  for (const content of contents) await request(broker.getHttpServer()).post('/messages').send({ topic, content }).expect(200);
}

const counters = ({ broker }: Shop, topic = 'order.created') =>
  broker
    .get(DispatcherRegistry)
    .get('orders')
    ?.subscriptions.find((subscription) => subscription.topic === topic)?.counters;
const contents = ({ listeners }: Shop): unknown[] => listeners.handled.map(([content]) => content);
const attempts = ({ listeners }: Shop): number[] => listeners.handled.map(([, { attempt }]) => attempt);

async function deadLetters(shop: Shop): Promise<readonly { content: Record<string, unknown> }[]> {
  await shop.stopBroker();
  const { engine } = fileEngine(shop.rootDir);
  const logs = await engine.open();
  const log = logs.find(({ topic }) => topic === 'dlq.orders');
  const texts = log === undefined ? [] : await readTexts(log);
  await engine.close();
  return texts.map((text) => JSON.parse(text as string) as { content: Record<string, unknown> });
}

describe('a consumer behind a real broker', () => {
  it('gets every message, in order, with what the producer said of it', async () => {
    const shop = await open();
    const message = { topic: 'order.created', content: { n: 0 }, id: 'order-0', key: '손님', headers: { tenant: 'a "b" %' } };
    await request(shop.broker.getHttpServer()).post('/messages').send(message).expect(200);
    await publish(shop, 'order.created', { n: 1 }, { n: 2 });
    await until(() => counters(shop)?.delivered === 3);
    expect(contents(shop)).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
    expect(shop.listeners.handled[0]?.[1]).toMatchObject({
      topic: 'order.created',
      offset: 0,
      attempt: 1,
      dispatcher: 'orders',
      id: 'order-0',
      key: '손님',
      headers: { tenant: 'a "b" %' },
      timestamp: expect.any(Number),
    });
  });

  it.each([
    ['Express', () => new ExpressAdapter()],
    ['Fastify', () => new FastifyAdapter()],
  ])('works on %s behind a global prefix, a path of its own, a guard and a ValidationPipe', async (_platform, adapter) => {
    const guarded: unknown[] = [];
    const guard: CanActivate = {
      canActivate: (context: ExecutionContext) => {
        guarded.push(context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['mmmq-dispatcher']);
        // The first one is sent again.
        return guarded.length > 1;
      },
    };
    const shop = await open({}, { path: '/consumer/messages', guards: [guard] }, '/api/consumer', {
      adapter: adapter(),
      configure: (app) => {
        app.setGlobalPrefix('api');
        app.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true }));
      },
    });
    await publish(shop, 'order.created', { n: 'x'.repeat(500_000) }, { n: 2 });
    await until(() => counters(shop)?.delivered === 2);
    expect(guarded).toEqual(['orders', 'orders', 'orders']);
    expect(contents(shop)).toEqual([{ n: 'x'.repeat(500_000) }, { n: 2 }]);
    expect(counters(shop)).toMatchObject({ improper: 1, nacked: 0 });
  });

  it('gets a message that it throws at again, and it becomes a dead letter with the reason in the end', async () => {
    const shop = await open();
    shop.listeners.act = (content) => {
      if (content === 'bad') throw new Error('no such customer');
    };
    await publish(shop, 'order.created', 'bad', 'good');
    await until(() => counters(shop)?.delivered === 1);
    expect(contents(shop)).toEqual(['bad', 'bad', 'bad', 'bad', 'good']);
    expect(attempts(shop)).toEqual([1, 2, 3, 4, 1]);
    expect(await deadLetters(shop)).toMatchObject([
      { content: { topic: 'order.created', offset: 0, attempts: 4, reason: 'no such customer', message: { content: 'bad' } } },
    ]);
  });

  it('gets a message that it rejects once; so with content that breaks the rules of its DTO, and topics without a listener', async () => {
    const shop = await open();
    shop.listeners.act = () => {
      throw new Reject('never');
    };
    await publish(shop, 'order.created', 'bad');
    await publish(shop, 'payment.done', { amount: 'much' }, { amount: 3 });
    await until(() => counters(shop, 'payment.done')?.delivered === 1 && counters(shop)?.deadLettered === 1);
    expect(contents(shop)).toEqual(expect.arrayContaining(['bad', { amount: 3 }]));
    expect(shop.listeners.handled).toHaveLength(2);
    const reasons = (await deadLetters(shop)).map(({ content }) => content['reason']);
    expect(reasons.toSorted()).toEqual(['content: amount: amount must be an integer number', 'never']);
  });

  it('gets a message that it puts off again, more often than there are resends', async () => {
    const shop = await open();
    let left = 6;
    shop.listeners.act = () => {
      left -= 1;
      if (left > 0) throw new RetryLater(1);
    };
    await publish(shop, 'order.created', 'later');
    await until(() => counters(shop)?.delivered === 1);
    expect(counters(shop)).toMatchObject({ nacked: 0, deadLettered: 0, improper: 5 });
    expect(attempts(shop)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('hears that the time of the dispatcher is up, and gets the message again', async () => {
    const shop = await open({ timeoutMs: 500 });
    const ended: unknown[] = [];
    shop.listeners.act = async (_content, { attempt, signal }) => {
      if (attempt > 1) return;
      await until(() => signal.aborted);
      ended.push(signal.reason);
    };
    await publish(shop, 'order.created', 'slow');
    await until(() => counters(shop)?.delivered === 1);
    expect(ended).toHaveLength(1);
    expect(attempts(shop)).toEqual([1, 2]);
  });

  it('handles what it has handled already once, with a de-duplication, though its answer came too late', async () => {
    const shop = await open({ timeoutMs: 500 }, { deduplication: new InMemoryDeduplication() });
    shop.listeners.act = (_content, { signal }) => until(() => signal.aborted);
    await publish(shop, 'order.created', 'slow');
    await until(() => counters(shop)?.delivered === 1);
    expect(attempts(shop)).toEqual([1]);
  });

  it('gets batches, stops where it refuses, and everything has its verdict in the end', async () => {
    const shop = await open({ batch: { maxMessages: 10 } });
    let isHeld = true;
    let puts = 2;
    shop.listeners.act = (content) => {
      if (isHeld) throw new RetryLater(0);
      if (content === 2) throw new Reject('never');
      if (content === 4) throw new Error('not this one');
      if (content === 6 && puts-- > 0) throw new RetryLater(0);
    };
    await publish(shop, 'order.created', 0, 1, 2, 3, 4, 5, 6, 7);
    isHeld = false;
    await until(() => counters(shop)?.delivered === 6);
    expect(counters(shop)).toMatchObject({ delivered: 6, deadLettered: 2 });
    const handled = shop.listeners.handled.filter(([, context]) => context.offset > 0).map(([content, { offset }]) => [content, offset]);
    expect(handled.every(([content, offset]) => content === offset)).toBe(true);
    expect((await deadLetters(shop)).map(({ content }) => [content['offset'], content['reason']])).toEqual([
      [2, 'never'],
      [4, 'not this one'],
    ]);
  });

  it('is away for a while, and gets everything when it is back', async () => {
    const shop = await open();
    await publish(shop, 'order.created', 0);
    await until(() => counters(shop)?.delivered === 1);
    const [closeConsumer] = stops.splice(0, 1);
    await closeConsumer?.();
    await publish(shop, 'order.created', 1, 2);
    await until(() => (counters(shop)?.improper ?? 0) > 1);
    const back = await consumerApplication({ port: shop.consumerPort, metadata: { providers: [Listeners] } });
    stops.unshift(() => back.app.close());
    await until(() => counters(shop)?.delivered === 3);
    expect(back.app.get(Listeners).handled.map(([content]) => content)).toEqual([1, 2]);
  });
});
