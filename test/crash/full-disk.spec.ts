import { closeSync, openSync, writeSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { brokerProcesses, type BrokerProcess } from '../support/broker-process.js';
import { Gate } from '../support/gate.js';
import { smallDisks, type SmallDisk } from '../support/small-disk.js';
import { ack, answer, TestConsumer, type TestAnswer } from '../support/test-consumer.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

const TOPIC = 'order.created';
const reject: TestAnswer = (_message, response) => answer(response, 200, '{"acknowledgement":"NACK","retry":false,"reason":"not mine"}');
const PRODUCERS = 4;
/** The disk has room for it twice, so that publishes are taken at first. */
const RESERVE_BYTES = 48 * 1024;
/** Messages that the consumer refuses for good. */
const REJECTED = 20;
/** So many publishes find no room before the test goes on. */
const REFUSALS = 12;

// In the order in which things must go: who uses the disk, the disk, and the directory in which it stands.
const brokers = brokerProcesses();
const consumers: TestConsumer[] = [];
const disks: SmallDisk[] = [];
afterEach(async () => {
  for (const consumer of consumers.splice(0)) await consumer.stop();
  for (const disk of disks.splice(0)) disk.remove();
});
const newDirectory = temporaryDirectories();

const small = smallDisks();

interface Answer {
  readonly content: string;
  readonly status: number;
  readonly body: { readonly acknowledgement: string; readonly offset?: number; readonly reason?: string };
}

/** What all producers together were told. */
class Answers {
  private readonly answers: Answer[] = [];
  private number = 0;

  constructor(private readonly topic = TOPIC) {}

  async publish(broker: BrokerProcess): Promise<Answer> {
    this.number += 1;
    const content = `${this.number} ${'x'.repeat(this.number % 1500)}`;
    const response = await broker.publish({ topic: this.topic, content });
    const given = { content, status: response.status, body: (await response.json()) as Answer['body'] };
    this.answers.push(given);
    return given;
  }

  async publishUntil(broker: BrokerProcess, isEnough: () => boolean): Promise<void> {
    const producer = async (): Promise<void> => {
      while (!isEnough()) await this.publish(broker);
    };
    await Promise.all(Array.from({ length: PRODUCERS }, producer));
  }

  get acknowledged(): Answer[] {
    return this.answers.filter(({ body }) => body.acknowledgement === 'ACK');
  }

  get refused(): Answer[] {
    return this.answers.filter(({ body }) => body.acknowledgement !== 'ACK');
  }

  /** What must be delivered, by offset: nothing else was acknowledged. */
  get contents(): string[] {
    const contents: string[] = [];
    for (const { content, body } of this.acknowledged) contents[body.offset ?? -1] = content;
    return contents;
  }
}

async function readiness(broker: BrokerProcess): Promise<{ status: number; text: string }> {
  const response = await fetch(`${broker.url}/health/ready`);
  return { status: response.status, text: await response.text() };
}

const contentsOf = (consumer: TestConsumer): string[] => {
  const contents: string[] = [];
  for (const { offset, body } of consumer.received) contents[offset] = (JSON.parse(body) as { content: string }).content;
  return contents;
};

/** Entry for entry and record for record: nothing in the files but whole messages. */
async function expectWholeFiles(dataDir: string, count: number): Promise<void> {
  const names = (await readdir(join(dataDir, TOPIC))).filter((name) => name.endsWith('.mmm')).sort();
  let found = 0;
  for (const name of names) {
    const segment = await readFile(join(dataDir, TOPIC, name));
    const index = await readFile(join(dataDir, TOPIC, name.replace('.mmm', '.idx')));
    const positions: number[] = [];
    let position = 0;
    while (position < segment.length) {
      positions.push(position);
      position += 4 + segment.readInt32BE(position);
    }
    expect(position).toBe(segment.length);
    expect(positions).toEqual(Array.from({ length: index.length / 8 }, (_, record) => Number(index.readBigInt64BE(record * 8))));
    found += positions.length;
  }
  expect(found).toBe(count);
}

/** Leaves no room for a single byte. */
function fillToTheLastByte(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
}

const describeFull = 'problem' in small ? describe.skip : describe;
const where = 'problem' in small ? `not checked here: ${small.problem}` : `here on ${small.kind}`;

describeFull(`A broker on a disk that is full (${where})`, () => {
  it('refuses publishes, goes on with the rest, starts again after a kill, and recovers by itself when there is room', async () => {
    if ('problem' in small) return;
    const parent = await newDirectory();
    const disk = await small.make(parent);
    disks.push(disk);
    const delivery = new Gate();
    const consumer = await TestConsumer.start((message, response) => void delivery.opened.then(() => ack(message, response)));
    consumers.push(consumer);
    const dataDir = join(disk.dir, 'data');
    const options = {
      cwd: parent,
      under: disk.under,
      config: [
        'mmmq:',
        `  broker: { storage: { root-dir: '${dataDir}', reserve-bytes: ${RESERVE_BYTES} } }`,
        `  dispatchers: [{ name: audit, host: '${consumer.url}', patterns: ['order.**'], backoff: { initial-ms: 10, max-ms: 50 } }]`,
      ].join('\n'),
    };
    const answers = new Answers();

    // Full: every further publish is refused, with a reason, and readiness says which topic.
    const first = await brokers.start(options);
    await answers.publishUntil(first, () => answers.refused.length >= REFUSALS);
    const refusedStatuses = new Set(answers.refused.map(({ status, body }) => `${status} ${body.acknowledgement}`));
    expect([...refusedStatuses]).toEqual([`${disk.fullStatus} NACK`]);
    expect(answers.acknowledged.length).toBeGreaterThan(10);
    if (disk.isSeen) expect(await readiness(first)).toEqual({ status: 503, text: expect.stringContaining(`"topic":"${TOPIC}"`) });

    // Meanwhile what is there is delivered, and each checkpoint is written.
    const before = answers.acknowledged.length;
    delivery.open();
    const checkpoint = join(dataDir, TOPIC, 'checkpoints/audit.checkpoint');
    await until(async () => Number((await readFile(checkpoint)).readBigInt64BE()) >= before);

    // A kill, and a start on the full disk: everything that was acknowledged is there, and nothing more, not even before the start.
    expect(await first.end('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
    await expectWholeFiles(dataDir, answers.contents.length);
    const second = await brokers.start(options);
    await expectWholeFiles(dataDir, answers.contents.length);
    expect((await stat(checkpoint)).size).toBe(8);
    await answers.publishUntil(second, () => answers.refused.length >= 2 * REFUSALS);
    if (disk.isSeen) expect((await readiness(second)).status).toBe(503);

    // Room: readiness comes back without a publish, and publishes are taken, without a restart.
    await disk.makeRoom(second);
    if (disk.isSeen) await until(async () => (await readiness(second)).status === 200);
    const after = await answers.publish(second);
    expect(after).toMatchObject({ status: 200, body: { acknowledgement: 'ACK' } });
    expect((await readiness(second)).status).toBe(200);
    await answers.publishUntil(second, () => answers.acknowledged.length >= before + 200);
    await until(() => contentsOf(consumer).length === answers.contents.length);
    expect(contentsOf(consumer)).toEqual(answers.contents);
    expect(await second.end()).toEqual({ code: 0, signal: null });
    await expectWholeFiles(dataDir, answers.contents.length);

    const { acknowledged, refused } = answers;
    console.log(
      `full disk: on ${disk.kind}: ${acknowledged.length} acknowledged, ${refused.length} refused, ${consumer.received.length} deliveries`,
    );
  }, 90_000);
});

// A limit to the size of files is met by each file alone: there is no room that one could leave to another.
const describeMounted = 'isMounted' in small && small.isMounted ? describe : describe.skip;

describeMounted(`The reserve of a broker on a disk that is full (on a tmpfs alone, and ${where})`, () => {
  it('keeps dead letters and checkpoints going while publishes are refused', async () => {
    if ('problem' in small) return;
    const parent = await newDirectory();
    const disk = await small.make(parent);
    disks.push(disk);
    const delivery = new Gate();
    const consumer = await TestConsumer.start((message, response) => void delivery.opened.then(() => reject(message, response)));
    consumers.push(consumer);
    const dataDir = join(disk.dir, 'data');
    const broker = await brokers.start({
      cwd: parent,
      under: disk.under,
      config: [
        'mmmq:',
        `  broker: { storage: { root-dir: '${dataDir}', reserve-bytes: ${RESERVE_BYTES} } }`,
        `  dispatchers: [{ name: audit, host: '${consumer.url}', patterns: ['order.**'], backoff: { initial-ms: 10, max-ms: 50 } }]`,
      ].join('\n'),
    });
    const rejected = new Answers();
    await rejected.publishUntil(broker, () => rejected.acknowledged.length >= REJECTED);
    const others = new Answers('ballast');
    await others.publishUntil(broker, () => others.refused.length >= REFUSALS);
    fillToTheLastByte(join(disk.dir, 'rest'));

    delivery.open();
    const checkpoint = join(dataDir, TOPIC, 'checkpoints/audit.checkpoint');
    const count = rejected.contents.length;
    await until(async () => Number((await readFile(checkpoint)).readBigInt64BE()) === count);
    expect((await stat(join(dataDir, 'dlq.audit/0000000000000000000.idx'))).size).toBe(8 * count);
    expect((await stat(join(dataDir, '.mmmq.reserve'))).size).toBe(0);
    expect(await others.publish(broker)).toMatchObject({ status: 507, body: { acknowledgement: 'NACK' } });
    expect(await readiness(broker)).toEqual({ status: 503, text: expect.stringContaining('is kept for dead letters and checkpoints') });

    await disk.makeRoom(broker);
    await until(async () => (await readiness(broker)).status === 200);
    expect((await stat(join(dataDir, '.mmmq.reserve'))).size).toBe(RESERVE_BYTES);
    expect(await others.publish(broker)).toMatchObject({ status: 200 });
    expect(await broker.end()).toEqual({ code: 0, signal: null });
    console.log(`full disk: on ${disk.kind}: ${count} dead letters with the reserve of ${RESERVE_BYTES} bytes`);
  }, 90_000);
});
