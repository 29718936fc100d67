import { basename } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import request from 'supertest';
import { Dispatcher, HealthModule, Host, TopicPattern } from '../../src/index.js';
import { brokerApplication } from '../support/broker-application.js';
import { FaultyFileSystem } from '../support/faulty-file-system.js';
import { Gate } from '../support/gate.js';
import { ack, TestConsumer } from '../support/test-consumer.js';
import { temporaryDirectories } from '../support/temporary-directory.js';

const newDirectory = temporaryDirectories();
const SEGMENT = /order\.created\/\d+\.mmm$/;

let rootDir: string;
let disk: FaultyFileSystem;
let consumer: TestConsumer;
/** The consumer gives its answers when this is open. */
let delivery: Gate;
let app: INestApplication;

beforeEach(async () => {
  rootDir = await newDirectory();
  disk = new FaultyFileSystem();
  delivery = new Gate();
  consumer = await TestConsumer.start((message, response) => void delivery.opened.then(() => ack(message, response)));
  const orders = new Dispatcher('order-dispatcher', Host.of(consumer.url), [TopicPattern.of('order.**')], {
    backoff: { initialMs: 5, maxMs: 20 },
  });
  ({ app } = await brokerApplication({
    broker: { storage: { rootDir } },
    fileSystem: disk,
    metadata: { imports: [HealthModule], providers: [{ provide: orders.name, useValue: orders }] },
  }));
});

afterEach(async () => {
  delivery.open();
  await app.close();
  await consumer.stop();
});

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function publish(content: unknown, topic = 'order.created'): Promise<Answer> {
  const { status, body } = await request(app.getHttpServer()).post('/messages').send({ topic, content });
  return { status, body };
}

async function ready(): Promise<Answer> {
  const { status, body } = await request(app.getHttpServer()).get('/health/ready');
  return { status, body };
}

/** Waits until publishes are welcome again. Jest's limit ends it where they never are. */
async function untilReady(): Promise<void> {
  while ((await ready()).status !== 200) await setImmediate();
}

const acknowledged = (offset: number, topic = 'order.created'): Answer => ({
  status: 200,
  body: { acknowledgement: 'ACK', topic, offset },
});
const refused = (status: number, reason: RegExp): Answer => ({
  status,
  body: { acknowledgement: 'NACK', reason: expect.stringMatching(reason) },
});
const notReady = (topic: string): object => ({
  status: 503,
  body: { details: { broker: { status: 'down', problems: [{ topic, reason: expect.any(String) }] } } },
});
const contents = (): unknown[] => consumer.received.map(({ body }) => (JSON.parse(body) as { content: unknown }).content);

describe('A broker whose disk is full', () => {
  it('says so, goes on with the delivery of what it has, and takes messages again when there is room', async () => {
    for (const offset of [0, 1, 2]) expect(await publish(offset)).toEqual(acknowledged(offset));
    disk.left = { bytes: 0 };
    const full = disk.fail({ operation: 'write', path: SEGMENT, errno: 'ENOSPC', bytesWritten: 7 });

    expect(await publish('lost')).toEqual(refused(507, /disk of the broker is full/));
    expect(await ready()).toMatchObject(notReady('order.created'));
    delivery.open();
    await consumer.until((received) => received.length === 3);
    expect(await publish('lost again')).toEqual(refused(507, /disk of the broker is full/));
    expect(await ready()).toMatchObject(notReady('order.created'));

    disk.left = {};
    full();
    await untilReady();
    expect(await publish(3)).toEqual(acknowledged(3));
    await consumer.until((received) => received.length === 4);
    expect(contents()).toEqual([0, 1, 2, 3]);
  });

  it('answers 507 for a topic that it cannot make, names it, and makes it when there is room', async () => {
    disk.left = { bytes: 0 };
    const full = disk.fail({ operation: 'makeDirectory', path: /order\.paid$/, errno: 'ENOSPC' });

    expect(await publish(0, 'order.paid')).toEqual(refused(507, /disk of the broker is full/));
    expect(await ready()).toMatchObject(notReady('order.paid'));
    disk.left = {};
    full();
    await untilReady();
    expect(await publish(0, 'order.paid')).toEqual(acknowledged(0, 'order.paid'));
  });
});

describe('A broker whose disk fails', () => {
  it('answers a failed sync with 503, refuses the topic alone, goes on with delivery, and re-opens the topic by itself', async () => {
    for (const offset of [0, 1, 2]) expect(await publish(offset)).toEqual(acknowledged(offset));
    disk.fail({ operation: 'sync', path: SEGMENT, errno: 'EIO', times: 1 });

    expect(await publish('doubtful')).toEqual(refused(503, /may or may not be stored/));
    expect(await publish('refused')).toEqual(refused(503, /takes no messages until/));
    expect(await ready()).toMatchObject(notReady('order.created'));
    expect(await publish(0, 'order.paid')).toEqual(acknowledged(0, 'order.paid'));
    delivery.open();
    await consumer.until((received) => received.length === 4);

    await untilReady();
    expect(await publish(3)).toEqual(acknowledged(3));
    await consumer.until((received) => received.length === 5);
    expect(consumer.received.filter(({ topic }) => topic === 'order.created').map(({ offset }) => offset)).toEqual([0, 1, 2, 3]);
    expect(contents()).not.toContain('doubtful');
  });

  it('answers 503 for a topic whose name it cannot make durable, names it, and makes it when the disk is well', async () => {
    const failing = disk.fail({ operation: 'syncDirectory', path: new RegExp(`${basename(rootDir)}$`), errno: 'EIO' });

    expect(await publish('lost')).toEqual(refused(503, /the disk of the broker failed/));
    expect(await ready()).toMatchObject(notReady('order.created'));
    expect(await publish('lost again')).toEqual(refused(503, /the disk of the broker failed/));
    failing();
    await untilReady();
    delivery.open();
    expect(await publish(0)).toEqual(acknowledged(0));
    await consumer.until((received) => received.length === 1);
    expect(contents()).toEqual([0]);
  });
});
