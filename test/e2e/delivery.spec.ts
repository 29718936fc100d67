import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import request from 'supertest';
import { Dispatcher, Host, TopicPattern, type DispatcherOptions } from '../../src/index.js';
import { brokerApplication } from '../support/broker-application.js';
import { fileEngine, readTexts } from '../support/file-engine.js';
import { ack, answer, choose, silence, status, TestConsumer, type TestAnswer } from '../support/test-consumer.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

const newDirectory = temporaryDirectories();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function startConsumer(...answers: TestAnswer[]): Promise<TestConsumer> {
  return stopLater(await TestConsumer.start(...answers));
}

function stopLater(consumer: TestConsumer): TestConsumer {
  stops.push(() => consumer.stop());
  return consumer;
}

/** A dispatcher with back-off short enough for a test; the waits themselves are tested with a clock. */
function dispatcher(name: string, url: string, patterns: readonly string[], options: DispatcherOptions = {}): Dispatcher {
  const compiled = patterns.map((pattern) => TopicPattern.of(pattern));
  return new Dispatcher(name, Host.of(url), compiled, { backoff: { initialMs: 5, maxMs: 20 }, ...options });
}

/** An application as a user writes it: BrokerModule imported, dispatchers declared as providers of his own. */
async function startBroker(options: {
  rootDir: string;
  dispatchers?: Dispatcher[];
}): Promise<{ app: INestApplication; stop: () => Promise<void> }> {
  const providers = (options.dispatchers ?? []).map((value) => ({ provide: value.name, useValue: value }));
  const { app } = await brokerApplication({ broker: { storage: { rootDir: options.rootDir } }, metadata: { providers } });
  let closed: Promise<void> | undefined;
  const stop = (): Promise<void> => (closed ??= app.close());
  stops.push(stop);
  return { app, stop };
}

async function publish(app: INestApplication, topic: string, content: unknown, members: object = {}): Promise<number> {
  const published = await request(app.getHttpServer())
    .post('/messages')
    .send({ topic, content, ...members });
  const acknowledged = { acknowledgement: 'ACK', topic, offset: expect.any(Number) };
  expect([published.status, published.body]).toEqual([200, acknowledged]);
  return published.body.offset as number;
}

const offsetsOf = (consumer: TestConsumer, topic?: string): number[] =>
  consumer.received.filter((delivery) => topic === undefined || delivery.topic === topic).map((delivery) => delivery.offset);

async function checkpoint(rootDir: string, topic: string, name: string): Promise<number> {
  return Number((await readFile(join(rootDir, topic, 'checkpoints', `${name}.checkpoint`))).readBigInt64BE(0));
}

async function untilCheckpoint(rootDir: string, topic: string, name: string, offset: number): Promise<void> {
  await until(async () => (await checkpoint(rootDir, topic, name).catch(() => -1)) === offset);
}

describe('delivery from publish to consumer', () => {
  it('pushes the stored bytes untouched, with the headers of the delivery', async () => {
    const rootDir = await newDirectory();
    const consumer = await startConsumer();
    const { app, stop } = await startBroker({
      rootDir,
      dispatchers: [dispatcher('order-dispatcher', `${consumer.url}/base`, ['order.**'])],
    });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const sent =
      '{ "topic" : "order.created", "content": {"amount":12.50,"big":9007199254740993,"a":1,"a":2, "s":"\\ud800 주문"}, "key":"손님 7", "headers":{"tenant":"a \\"b\\" 100%"}}';
    await request(app.getHttpServer())
      .post('/messages')
      .set('content-type', 'application/json')
      .set('idempotency-key', 'order-7')
      .set('traceparent', traceparent)
      .set('tracestate', 'vendor=1')
      .send(sent)
      .expect(200, '{"acknowledgement":"ACK","topic":"order.created","offset":0}');
    const [delivery] = await consumer.until((all) => all.length === 1);
    expect(delivery?.body).toMatch(/"timestamp":\d{13}\}$/);
    const added = `,"id":"order-7","traceparent":"${traceparent}","tracestate":"vendor=1","timestamp":`;
    expect(delivery?.body.slice(0, sent.length - 1 + added.length)).toBe(`${sent.slice(0, -1)}${added}`);
    expect(delivery?.headers).toMatchObject({
      'content-type': 'application/json',
      'mmmq-dispatcher': 'order-dispatcher',
      'mmmq-topic': 'order.created',
      'mmmq-offset': '0',
      'mmmq-attempt': '1',
      'mmmq-message-id': 'order-7',
      'mmmq-key': '%EC%86%90%EB%8B%98%207',
      'mmmq-header-tenant': 'a%20%22b%22%20100%25',
      traceparent,
      tracestate: 'vendor=1',
    });
    await stop();
    const { engine } = fileEngine(rootDir);
    const [topic] = await engine.open();
    expect(topic && (await readTexts(topic))).toEqual([delivery?.body]);
    await engine.close();
  });

  it('gives each dispatcher the topics of its patterns, those that are there and those that come, each in order', async () => {
    const rootDir = await newDirectory();
    const [orders, payments, notifications] = [await startConsumer(), await startConsumer(), await startConsumer()];
    const first = await startBroker({ rootDir });
    await publish(first.app, 'order.created', 0);
    await first.stop();
    const { app } = await startBroker({
      rootDir,
      dispatchers: [
        dispatcher('orders', orders.url, ['order.**', 'order.created']),
        dispatcher('payments', payments.url, ['payment.*']),
        dispatcher('notifications', notifications.url, ['notification.**']),
      ],
    });
    for (let number = 1; number <= 5; number += 1) {
      for (const topic of [
        'order.created',
        'order.paid.late',
        'payment.done',
        'payment.done.late',
        'notification',
        'notification.sent.sms',
      ]) {
        await publish(app, topic, number);
      }
    }
    await orders.until((all) => all.length === 11);
    await payments.until((all) => all.length === 5);
    await notifications.until((all) => all.length === 10);
    expect(offsetsOf(orders, 'order.created')).toEqual([0, 1, 2, 3, 4, 5]);
    expect(offsetsOf(orders, 'order.paid.late')).toEqual([0, 1, 2, 3, 4]);
    expect(offsetsOf(payments, 'payment.done')).toEqual([0, 1, 2, 3, 4]);
    expect(offsetsOf(notifications, 'notification')).toEqual([0, 1, 2, 3, 4]);
    expect(offsetsOf(notifications, 'notification.sent.sms')).toEqual([0, 1, 2, 3, 4]);
  });

  it('goes on after a restart where the checkpoint stands, and gives a new name the whole history', async () => {
    const rootDir = await newDirectory();
    const consumer = await startConsumer();
    const first = await startBroker({ rootDir, dispatchers: [dispatcher('orders', consumer.url, ['order.*'])] });
    for (let number = 0; number < 3; number += 1) await publish(first.app, 'order.created', number);
    await untilCheckpoint(rootDir, 'order.created', 'orders', 3);
    await first.stop();

    const newcomer = await startConsumer();
    const second = await startBroker({
      rootDir,
      dispatchers: [dispatcher('orders', consumer.url, ['order.*']), dispatcher('audit', newcomer.url, ['**'])],
    });
    await publish(second.app, 'order.created', 3);
    await newcomer.until((all) => all.length === 4);
    await consumer.until((all) => all.length === 4);
    expect(offsetsOf(newcomer)).toEqual([0, 1, 2, 3]);
    expect(offsetsOf(consumer)).toEqual([0, 1, 2, 3]);
  });

  const refusal = '{"acknowledgement":"NACK"}';
  const accepted: TestAnswer = (_message, response) => answer(response, 202, refusal);

  it('sends a message that gets NACK three times more, dead-letters it, commits and goes on', async () => {
    const rootDir = await newDirectory();
    const consumer = await startConsumer(choose(({ offset }) => (offset === 1 ? accepted : ack)));
    const { app, stop } = await startBroker({ rootDir, dispatchers: [dispatcher('orders', consumer.url, ['order.*'])] });
    for (const content of [{ n: 0 }, { n: 1.0, exact: '1.0' }, { n: 2 }]) await publish(app, 'order.created', content);
    await consumer.until((all) => all.some((delivery) => delivery.offset === 2));
    expect(consumer.received.map(({ offset, attempt }) => [offset, attempt])).toEqual([
      [0, 1],
      [1, 1],
      [1, 2],
      [1, 3],
      [1, 4],
      [2, 1],
    ]);
    await untilCheckpoint(rootDir, 'order.created', 'orders', 3);
    await stop();
    const { engine } = fileEngine(rootDir);
    const deadLetters = (await engine.open()).find((topic) => topic.topic === 'dlq.orders');
    const [stored = ''] = deadLetters === undefined ? [] : await readTexts(deadLetters);
    const { topic, content, timestamp } = JSON.parse(stored) as { topic: string; content: object; timestamp: number };
    expect([topic, typeof timestamp]).toEqual(['dlq.orders', 'number']);
    expect(content).toEqual({
      topic: 'order.created',
      offset: 1,
      attempts: 4,
      reason: 'NACK also after 3 resends',
      answer: { status: 202, body: refusal },
      message: JSON.parse(consumer.received[1]?.body ?? '') as object,
    });
    expect(stored).toContain(`"message":${consumer.received[1]?.body}`);
    await engine.close();
  });

  it('dead-letters at once what is not to be retried, and a dispatcher of the dead letters gets it', async () => {
    const rootDir = await newDirectory();
    const consumer = await startConsumer((_message, response) =>
      answer(response, 200, '{"acknowledgement":"NACK","retry":false,"reason":"no such customer"}'),
    );
    const operator = await startConsumer();
    const everything = await startConsumer();
    const { app } = await startBroker({
      rootDir,
      dispatchers: [
        dispatcher('orders', consumer.url, ['order.*']),
        dispatcher('operator', operator.url, ['dlq.**']),
        dispatcher('everything', everything.url, ['**']),
      ],
    });
    await publish(app, 'order.created', 1);
    const [deadLetter] = await operator.until((all) => all.length === 1);
    expect(JSON.parse(deadLetter?.body ?? '')).toMatchObject({ topic: 'dlq.orders', content: { attempts: 1, reason: 'no such customer' } });
    expect(consumer.received).toHaveLength(1);
    await everything.until((all) => all.length === 1);
    await request(app.getHttpServer()).post('/messages').send({ topic: 'dlq.orders', content: 1 }).expect(400);
  });

  it('waits for a consumer that is not there, and for one that answers no proper answer, as long as it takes', async () => {
    const rootDir = await newDirectory();
    const gone = await TestConsumer.start();
    const { port } = gone;
    await gone.stop();
    const { app } = await startBroker({ rootDir, dispatchers: [dispatcher('orders', `http://127.0.0.1:${port}`, ['order.*'])] });
    for (let number = 0; number < 3; number += 1) await publish(app, 'order.created', number);
    const nonsense =
      (code: number, body: string): TestAnswer =>
      (_message, response) =>
        answer(response, code, body);
    const back = stopLater(
      await TestConsumer.startOn(
        port,
        nonsense(404, '{"acknowledgement":"ACK"}'),
        status(500),
        status(302, { location: '/elsewhere' }),
        nonsense(200, ''),
        nonsense(200, 'OK'),
        nonsense(200, '{"acknowledgement":"ack"}'),
        nonsense(200, `{"acknowledgement":"ACK","filler":"${'x'.repeat(70_000)}"}`),
        ack,
      ),
    );
    await back.until((all) => all.filter((delivery) => delivery.offset === 2).length === 1);
    expect(offsetsOf(back)).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    const attempts = back.received.filter((delivery) => delivery.offset === 0).map((delivery) => delivery.attempt);
    expect(attempts).toEqual(attempts.map((_, index) => (attempts[0] ?? 0) + index));
  });

  it('lets a consumer that never answers cost the others nothing', async () => {
    const rootDir = await newDirectory();
    const hanging = await startConsumer(silence);
    const healthy = await startConsumer();
    const { app } = await startBroker({
      rootDir,
      dispatchers: [dispatcher('hanging', hanging.url, ['**'], { timeoutMs: 100 }), dispatcher('healthy', healthy.url, ['**'])],
    });
    for (let number = 0; number < 20; number += 1) await publish(app, 'order.created', number);
    await healthy.until((all) => all.length === 20);
    await hanging.until((all) => all.length >= 2);
    expect(offsetsOf(healthy)).toEqual(Array.from({ length: 20 }, (_, offset) => offset));
    expect(new Set(offsetsOf(hanging))).toEqual(new Set([0]));
  });

  it('keeps the order of each topic while one of them is stuck', async () => {
    const rootDir = await newDirectory();
    const consumer = await startConsumer(choose(({ topic }) => (topic === 'order.stuck' ? status(503) : ack)));
    const { app } = await startBroker({ rootDir, dispatchers: [dispatcher('orders', consumer.url, ['order.*'])] });
    for (let number = 0; number < 5; number += 1) {
      await publish(app, 'order.stuck', number);
      await publish(app, 'order.fine', number);
    }
    await consumer.until(() => offsetsOf(consumer, 'order.fine').length === 5);
    expect(offsetsOf(consumer, 'order.fine')).toEqual([0, 1, 2, 3, 4]);
    expect(new Set(offsetsOf(consumer, 'order.stuck'))).toEqual(new Set([0]));
  });

  it('skips a corrupt entry alone, and commits past it', async () => {
    const rootDir = await newDirectory();
    const first = await startBroker({ rootDir });
    for (let number = 0; number < 3; number += 1) await publish(first.app, 'order.created', number);
    await first.stop();
    const path = join(rootDir, 'order.created/0000000000000000000.mmm');
    const file = await open(path, 'r+');
    const entry = (await readFile(path)).readInt32BE(0) + 4;
    await file.write(Buffer.from('#'), 0, 1, entry + 12);
    await file.close();
    const consumer = await startConsumer();
    await startBroker({ rootDir, dispatchers: [dispatcher('orders', consumer.url, ['order.*'])] });
    await consumer.until((all) => all.length === 2);
    expect(offsetsOf(consumer)).toEqual([0, 2]);
    await untilCheckpoint(rootDir, 'order.created', 'orders', 3);
  });

  it('stores a message with the same id once, also after a restart', async () => {
    const rootDir = await newDirectory();
    const first = await startBroker({ rootDir });
    expect(await publish(first.app, 'order.created', { n: 1 }, { id: 'a' })).toBe(0);
    expect(await publish(first.app, 'order.created', { n: 2 }, { id: 'b' })).toBe(1);
    expect(await publish(first.app, 'order.created', { n: 1 }, { id: 'a' })).toBe(0);
    await first.stop();
    const second = await startBroker({ rootDir });
    expect(await publish(second.app, 'order.created', { n: 2 }, { id: 'b' })).toBe(1);
    const other = await request(second.app.getHttpServer())
      .post('/messages')
      .send({ topic: 'order.created', content: { n: 3 }, id: 'b' });
    expect([other.status, other.body]).toEqual([
      422,
      { acknowledgement: 'NACK', field: 'id', reason: expect.stringContaining('offset 1') },
    ]);
    expect(await publish(second.app, 'order.created', { n: 3 })).toBe(2);
  });
});
