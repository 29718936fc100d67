import 'reflect-metadata';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskQueue } from 'mmmq/disk-queue';
import type { DiskQueueRun } from './disk-queue.js';
import { timedCount, timedLoops, type Measurement } from './measurement.js';
import { messageOf, topicOf } from './messages.js';
import { endWithResult, programInput } from './program.js';

const run = programInput<DiskQueueRun>();
const message = Buffer.from(messageOf(topicOf(0), run.messageBytes));
const dir = join(run.directory, `${process.pid}.queue`);
const queue = await DiskQueue.open({ dir, name: 'bench', syncEvery: run.syncEvery });

async function takeAll(): Promise<Measurement> {
  const puts: Promise<void>[] = [];
  for (let count = 0; count < run.count; count += 1) puts.push(queue.put(message));
  await Promise.all(puts);
  return timedCount(run.count, async () => {
    const taken = await queue.take();
    if (taken?.length !== message.length) throw new Error('a message is missing');
  });
}

const result = await (run.does === 'put' ? timedLoops(run.producers, run, () => queue.put(message)) : takeAll());
await queue.close();
await rm(dir, { recursive: true });
endWithResult(result);
