import { fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { timedLoop } from '../harness/measurement.js';
import { messageOf, topicOf } from '../harness/messages.js';
import { endWithResult, programInput } from '../harness/program.js';
import type { AppendLoop } from './append-loop.js';

const loop = programInput<AppendLoop>();
const message = Buffer.from(messageOf(topicOf(0), loop.messageBytes));
const messages = openSync(join(loop.directory, `${process.pid}.messages`), 'wx');
const positions = openSync(join(loop.directory, `${process.pid}.positions`), 'wx');
const position = Buffer.alloc(8);
let written = 0;

// Synchronous calls: nothing else is to be done meanwhile, and the way through the thread pool costs more.
const result = await timedLoop(loop, () => {
  position.writeBigInt64BE(BigInt(written));
  written += writeSync(messages, message);
  fdatasyncSync(messages);
  if (loop.files === 1) return;
  writeSync(positions, position);
  fdatasyncSync(positions);
});
endWithResult(result);
