import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from '@jest/globals';
import { NotStoredError, ProduceRefusedError, rawJson, type Producer } from '../../src/producer/index.js';
import { brokerApplication, type BrokerApplicationOptions } from '../support/broker-application.js';
import { brokerProcesses, type BrokerProcess } from '../support/broker-process.js';
import { fileEngine, readTexts } from '../support/file-engine.js';
import { nodeProcesses, type NodeProcess } from '../support/node-process.js';
import { producers, recordingObserver } from '../support/producers.js';
import { smallDisks, type SmallDisk } from '../support/small-disk.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

// In the order in which things must go: who uses the broker, the broker, the disk, and the directories.
const open = producers();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});
const startProgram = nodeProcesses();
const brokers = brokerProcesses();
const disks: SmallDisk[] = [];
afterEach(() => {
  for (const disk of disks.splice(0)) disk.remove();
});
const newDirectory = temporaryDirectories();

interface Stored {
  readonly id: string;
  readonly content: unknown;
  readonly traceparent?: string;
  /** As it lies in the log. */
  readonly text: string;
}

/** A broker inside of this process. @returns where it is, and what stands in a topic of its log once it is stopped */
async function embedded(
  options: BrokerApplicationOptions['broker'] = {},
): Promise<{ readonly url: string; readonly port: number; stored(topic: string): Promise<Stored[]> }> {
  const rootDir = await newDirectory();
  const { app, url, port } = await brokerApplication({ broker: { ...options, storage: { rootDir, reserveBytes: 0 } } });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= app.close());
  stops.push(stop);
  return {
    url,
    port,
    stored: async (topic) => {
      await stop();
      return storedIn(rootDir, topic);
    },
  };
}

/** What stands in a topic of a log that nobody has open. */
async function storedIn(rootDir: string, name: string): Promise<Stored[]> {
  const { engine } = fileEngine(rootDir);
  const topic = (await engine.open()).find((each) => each.topic === name);
  const texts = topic === undefined ? [] : await readTexts(topic);
  await engine.close();
  return texts.map((text = '{}') => ({ ...(JSON.parse(text) as Stored), text }));
}

/** Where nobody listens, until a broker does. */
async function freePort(): Promise<number> {
  const proxy = await TcpProxy.start(1);
  const { port } = new URL(proxy.url);
  await proxy.stop();
  return Number(port);
}

const contentsOf = (stored: readonly Stored[]): unknown[] => stored.map(({ content }) => content);

describe('a producer and a broker', () => {
  it('speak to each other: one message, many, encoded content, a trace, a path', async () => {
    const broker = await embedded();
    const producer = await open({ broker: broker.url });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    expect(await producer.produce('order.created', rawJson('{"amount":12345678901234567890.0}'), { traceparent })).toMatchObject({
      offset: 0,
    });
    const results = await producer.produceBatch([
      { topic: 'order.created', content: 'second', key: 'customer-3', headers: { tenant: 'acme' } },
      { topic: 'order.created', content: rawJson('{\r\n"third": 3}') },
      { topic: 'order.paid', content: 'other' },
    ]);
    expect(results.map(({ receipt }) => receipt?.outcome === 'acknowledged' && receipt.offset)).toEqual([1, 2, 0]);
    const stored = await broker.stored('order.created');
    expect(contentsOf(stored).slice(1)).toEqual(['second', { third: 3 }]);
    expect(stored[0]?.text).toContain('"content":{"amount":12345678901234567890.0}');
    expect(stored[0]?.traceparent).toBe(traceparent);
    expect(stored[1]).toMatchObject({ key: 'customer-3', headers: { tenant: 'acme' } });
  });

  it('agree on what is refused', async () => {
    const broker = await embedded({ message: { maxBytes: 1000 } });
    const producer = await open({ broker: broker.url });
    await producer.produce('order.created', 1, { id: 'a' });
    for (const [topic, content, id, status] of [
      ['order.created', 2, 'a', 422],
      ['Order.created', 1, 'b', 409],
      ['order.created', 'x'.repeat(2000), 'c', 413],
    ] as const) {
      const alone = await producer.produce(topic, content, { id }).catch((error: unknown) => error);
      expect(alone).toBeInstanceOf(ProduceRefusedError);
      const [first, second] = await producer.produceBatch([
        { topic, content, id },
        { topic, content, id },
      ]);
      for (const error of [alone, first?.error, second?.error]) expect(error).toMatchObject({ status, id });
    }
    const nowhere = await open({ broker: `${broker.url}/nowhere` });
    await expect(nowhere.produce('order.created', 1)).rejects.toMatchObject({ status: 404 });
  });

  it('get along where the broker takes smaller batches', async () => {
    const broker = await embedded({ batch: { maxMessages: 3, maxBytes: 2000 } });
    const producer = await open({ broker: broker.url });
    const contents = Array.from({ length: 50 }, (_, number) => `${number} ${'x'.repeat((number * 17) % 400)}`);
    const receipts = await Promise.all(contents.map((content) => producer.produce('order.created', content)));
    expect(receipts.map((receipt) => receipt.outcome === 'acknowledged' && receipt.offset)).toEqual(contents.map((_, offset) => offset));
    expect(contentsOf(await broker.stored('order.created'))).toEqual(contents);
  });

  it('store a message once whose answer was lost, alone and in a batch', async () => {
    const broker = await embedded();
    const proxy = await TcpProxy.start(broker.port);
    stops.push(() => proxy.stop());
    const producer = await open({ broker: proxy.url });
    proxy.answersToLose = 1;
    expect(await producer.produce('order.created', 1)).toMatchObject({ outcome: 'acknowledged', offset: 0 });
    proxy.answersToLose = 1;
    const receipts = await Promise.all([2, 3].map((content) => producer.produce('order.created', content)));
    expect(receipts).toMatchObject([{ offset: 1 }, { offset: 2 }]);
    expect(proxy.lost).toBe(2);
    expect(contentsOf(await broker.stored('order.created'))).toEqual([1, 2, 3]);
  });

  it('know that a message is not stored where nobody listens', async () => {
    const producer = await open({ broker: `http://127.0.0.1:${await freePort()}`, deadlineMs: 50 });
    const error = await producer.produce('order.created', 1).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(NotStoredError);
    expect(error).toMatchObject({ reason: 'connection refused (ECONNREFUSED)' });
  });

  it('wait for each other where the broker has too much to do', async () => {
    const limits = { message: { maxBytes: 1000 }, batch: { maxBytes: 1000 }, pending: { maxBytes: 1000 } };
    const broker = await embedded(limits);
    // A client that stops in the middle of its body holds nearly all of pending.max-bytes.
    const hog = connect(broker.port, '127.0.0.1');
    hog.on('error', () => undefined);
    hog.write(`POST /messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n"${'x'.repeat(990)}`);
    const { observer, heard } = recordingObserver();
    const reasons: string[] = [];
    // The request of the hog and the first of the producer come on two connections, in any order: this one is repeated until it was refused once.
    const producer = await open({ broker: broker.url, observer: { ...observer, repeated: ({ reason }) => reasons.push(reason) } });
    const produced: Promise<unknown>[] = [];
    await until(() => {
      if (reasons.length === 0 && produced.length === heard.length) produced.push(producer.produce('order.created', produced.length));
      return reasons.length > 0;
    });
    expect(reasons[0]).toMatch(/^answered with 429: too many bytes of publishes wait/);
    hog.destroy();
    await Promise.all(produced);
    expect(contentsOf(await broker.stored('order.created'))).toEqual(produced.map((_, number) => number));
  });
});

/** A stream of messages that never stops to ask how the broker is. */
async function produceAll(producer: Producer, count: number, onAcknowledged: (acknowledged: number) => void): Promise<void> {
  let acknowledged = 0;
  const produceOne = async (topic: string, number: number): Promise<void> => {
    await producer.produce(topic, number);
    acknowledged += 1;
    onAcknowledged(acknowledged);
  };
  const produced: Promise<void>[] = [];
  for (let number = 0; number < count; number += 1) {
    const topic = number % 3 === 0 ? 'order.paid' : 'order.created';
    produced.push(produceOne(topic, number));
    if (number % 7 === 0) await produced[Math.max(0, number - 50)];
  }
  await Promise.all(produced);
}

const numbers = (count: number, isPaid: boolean): number[] =>
  Array.from({ length: count }, (_, number) => number).filter((number) => (number % 3 === 0) === isPaid);

describe('a broker that is killed and comes back', () => {
  const COUNT = 1500;

  it.each(['without', 'with'])('has every message once, in order, from a producer %s a spool', async (how) => {
    const cwd = await newDirectory();
    const env = { SERVER_PORT: String(await freePort()) };
    let broker: BrokerProcess = await brokers.start({ cwd, env });
    const spool = how === 'with' ? { spool: { dir: await newDirectory() } } : {};
    const producer = await open({ broker: broker.url, ...spool });
    let kills = 0;
    let restarted: Promise<void> = Promise.resolve();
    const again = async (before: Promise<void>): Promise<void> => {
      await before;
      await broker.end('SIGKILL');
      broker = await brokers.start({ cwd, env });
    };
    await produceAll(producer, COUNT, (acknowledged) => {
      if (acknowledged < (kills + 1) * 400 || kills === 3) return;
      kills += 1;
      restarted = again(restarted);
    });
    await restarted;
    await until(() => producer.spoolDepth === 0);
    expect(kills).toBe(3);
    await broker.end('SIGTERM');
    expect(contentsOf(await storedIn(join(cwd, 'data'), 'order.created'))).toEqual(numbers(COUNT, false));
    expect(contentsOf(await storedIn(join(cwd, 'data'), 'order.paid'))).toEqual(numbers(COUNT, true));
  });
});

const PRODUCING = (broker: string, dir: string, from: number, count: number): string => `
  import { Producer } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, '../../dist/producer/index.js')).href)};
  const producer = await Producer.open({ broker: ${JSON.stringify(broker)}, spool: { dir: ${JSON.stringify(dir)} }, backoff: { initialMs: 5, maxMs: 20 } });
  let number = ${from};
  const receipts = await Promise.all(Array.from({ length: ${count} }, () => producer.produce('order.created', number++)));
  console.log(JSON.stringify(receipts.map(({ outcome }) => outcome)), producer.spoolDepth);
  setInterval(() => console.log('depth ' + producer.spoolDepth + ';'), 5);
`;

describe('a spool', () => {
  it('survives its process, killed, and the broker, killed, and is sent in order', async () => {
    const [cwd, dir, programs] = [await newDirectory(), await newDirectory(), await newDirectory()];
    const env = { SERVER_PORT: String(await freePort()) };
    const url = `http://127.0.0.1:${env.SERVER_PORT}`;
    const program = async (from: number, count: number): Promise<NodeProcess> => {
      const script = join(programs, `from-${from}.mjs`);
      await writeFile(script, PRODUCING(url, dir, from, count));
      return startProgram(script, { cwd: programs });
    };
    const first = await program(0, 200);
    await first.printed(/spooled.* 200\n/);
    await first.end('SIGKILL');

    const second = await program(200, 300);
    await second.printed(/spooled.* 500\n/);
    const broker = await brokers.start({ cwd, env });
    await second.printed(/depth (?!500;)\d+;/);
    await broker.end('SIGKILL');
    await second.end('SIGKILL');

    const third = await program(500, 10);
    const again = await brokers.start({ cwd, env });
    await third.printed(/depth 0;/);
    await third.end('SIGTERM');
    await again.end('SIGTERM');
    expect(contentsOf(await storedIn(join(cwd, 'data'), 'order.created'))).toEqual(Array.from({ length: 510 }, (_, number) => number));
  });

  it('has a refused message in its middle, which goes to the dead file and holds nobody up', async () => {
    const port = await freePort();
    const [cwd, dir] = [await newDirectory(), await newDirectory()];
    const producer = await open({ broker: `http://127.0.0.1:${port}`, spool: { dir } });
    const contents = [1, 2, 'x'.repeat(3000), 4, 5];
    for (const content of contents) expect((await producer.produce('order.created', content)).outcome).toBe('spooled');
    const broker = await brokers.start({
      cwd,
      env: { SERVER_PORT: String(port) },
      config: 'mmmq:\n  broker:\n    message:\n      max-bytes: 2000\n',
    });
    await until(() => producer.spoolDepth === 0);
    await broker.end('SIGTERM');
    expect(contentsOf(await storedIn(join(cwd, 'data'), 'order.created'))).toEqual([1, 2, 4, 5]);
    const dead = JSON.parse(await readFile(join(dir, 'producer.dead.ndjson'), 'utf8')) as { status: number; message: Stored };
    expect(dead).toMatchObject({ status: 413, message: { content: contents[2] } });
  });
});

const small = smallDisks();

describe('a broker whose disk is full', () => {
  it.each(['without', 'with'])('refuses until there is room, and then has every message once, from a producer %s a spool', async (how) => {
    if ('problem' in small) {
      process.stderr.write(`not tested: no small disk can be had here: ${small.problem}\n`);
      return;
    }
    const cwd = await newDirectory();
    const disk = await small.make(cwd);
    disks.push(disk);
    const env = { MMMQ_BROKER_STORAGE_ROOT_DIR: join(disk.dir, 'data'), MMMQ_BROKER_STORAGE_RESERVE_BYTES: '0' };
    const broker = await brokers.start({ cwd, env, under: disk.under });
    const reasons: string[] = [];
    const hear = ({ reason }: { readonly reason: string }): void => {
      reasons.push(reason);
    };
    const spool = how === 'with' ? { spool: { dir: await newDirectory() } } : {};
    const producer = await open({ broker: broker.url, observer: { repeated: hear, spooled: hear }, ...spool });
    const produced: Promise<unknown>[] = [];
    await until(() => {
      if (produced.length < 400) produced.push(producer.produce('order.created', `${produced.length} ${'x'.repeat(2000)}`));
      return reasons.length > 0 && produced.length === 400;
    });
    expect(reasons[0]).toContain(`answered with ${disk.fullStatus}`);
    await disk.makeRoom(broker);
    await Promise.all(produced);
    await until(() => producer.spoolDepth === 0);
    await broker.end('SIGTERM');
    const stored = await storedIn(join(disk.dir, 'data'), 'order.created');
    expect(stored.map(({ content }) => Number(String(content).split(' ')[0]))).toEqual(produced.map((_, number) => number));
  });
});
