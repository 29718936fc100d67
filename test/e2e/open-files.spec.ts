import { afterEach, describe, expect, it } from '@jest/globals';
import { brokerProcesses } from '../support/broker-process.js';
import { silence, TestConsumer } from '../support/test-consumer.js';
import { temporaryDirectories } from '../support/temporary-directory.js';

const TOPICS = 200;
const PRODUCERS = 8;

const { start } = brokerProcesses();
const newDirectory = temporaryDirectories();
let consumer: TestConsumer | undefined;
afterEach(async () => {
  await consumer?.stop();
  consumer = undefined;
});

/** A shell that lets the program have so many files and connections open. */
const withOpenFiles = (limit: number): readonly string[] => ['bash', '-c', `ulimit -n ${limit} && exec "$0" "$@"`];

describe('a broker that may have few files open', () => {
  it('acknowledges every publish although the consumer of every topic hangs', async () => {
    consumer = await TestConsumer.start(silence);
    const config = [
      'mmmq:',
      '  dispatchers:',
      `    - { name: orders, host: '${consumer.url}', patterns: ['**'], timeout-ms: 600000 }`,
    ].join('\n');
    const broker = await start({ cwd: await newDirectory(), config, under: withOpenFiles(256) });
    if (process.platform === 'linux') {
      await broker.printed(/may have 256 files and connections open, and can need 1088: .* 128 connections to consumers/);
    }

    const failures: string[] = [];
    let next = 0;
    const produce = async (): Promise<void> => {
      while (next < TOPICS) {
        const topic = `topic.${(next += 1)}`;
        const response = await broker.publish({ topic, content: 1 });
        if (response.status !== 200) failures.push(`${topic}: ${response.status} ${await response.text()}`);
        else await response.arrayBuffer();
      }
    };
    await Promise.all(Array.from({ length: PRODUCERS }, produce));
    expect(failures).toEqual([]);
    const received = await consumer.until((all) => all.length >= 128);
    // Each topic hangs once: nobody was sent again for want of a handle, and the others wait for their turn.
    expect(new Set(received.map(({ topic, attempt }) => `${topic} ${attempt}`)).size).toBe(128);
    expect(received.every(({ attempt }) => attempt === 1)).toBe(true);
    expect(broker.errors).toBe('');
  });

  it('says nothing where it may have enough', async () => {
    const broker = await start({ cwd: await newDirectory(), under: withOpenFiles(1024) });
    expect(broker.output).not.toContain('ulimit');
  });
});
