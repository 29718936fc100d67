import { fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'undici';
import { timedLoop } from '../harness/measurement.js';
import { messageOf, topicOf } from '../harness/messages.js';
import { endWithResult, programInput } from '../harness/program.js';
import type { DeliveryLoop } from './delivery-loop.js';

const loop = programInput<DeliveryLoop>();
const client = new Client(loop.consumerUrl);
const body = messageOf(topicOf(0), loop.messageBytes);
const headers = { 'content-type': 'application/json' };
const checkpoint = openSync(join(loop.directory, `${process.pid}.checkpoint`), 'wx');
const offset = Buffer.alloc(8);
let delivered = 0n;

// The checkpoint is synced by synchronous calls, as nothing else is to be done meanwhile.
const result = await timedLoop(loop, async () => {
  const answer = await client.request({ method: 'POST', path: '/messages', headers, body });
  const { acknowledgement } = (await answer.body.json()) as { readonly acknowledgement: string };
  if (acknowledgement !== 'ACK') throw new Error(`the consumer answered ${acknowledgement}`);
  delivered += 1n;
  offset.writeBigInt64BE(delivered);
  writeSync(checkpoint, offset, 0, offset.length, 0);
  fdatasyncSync(checkpoint);
});
endWithResult(result);
