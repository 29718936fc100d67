import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { BrokerModule, TopicQueueService } from 'mmmq';
import type { Lookup } from './lookup.js';
import { timedLoop } from './measurement.js';
import { endWithResult, programInput } from './program.js';

const lookup = programInput<Lookup>();
const app = await NestFactory.create(BrokerModule.forRoot({ storage: { rootDir: lookup.dataDir } }), {
  logger: ['error', 'warn'],
  abortOnError: false,
});
await app.init();
const topicQueue = app.get(TopicQueueService).topicQueue(lookup.topic);
if (topicQueue === undefined) throw new Error(`there is no topic ${lookup.topic}`);

const result = await timedLoop(lookup, async () => {
  const offset = Math.floor(Math.random() * topicQueue.count);
  const [entry] = await topicQueue.read(offset, { maxCount: 1, maxBytes: 1 });
  if (entry?.offset !== offset || entry.payload === undefined) throw new Error(`offset ${offset} could not be read`);
});
await app.close();
endWithResult(result);
