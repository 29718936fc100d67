import { fdatasyncSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { timedCount, timedLoop } from '../harness/measurement.js';
import { messageOf, topicOf } from '../harness/messages.js';
import { endWithResult, programInput } from '../harness/program.js';
import type { RecordLoop } from './record-loop.js';

const loop = programInput<RecordLoop>();
const message = Buffer.from(messageOf(topicOf(0), loop.messageBytes));
const record = Buffer.alloc(4 + message.length);
record.writeInt32BE(message.length, 0);
message.copy(record, 4);
const path = join(loop.directory, `${process.pid}.records`);
const file = openSync(path, 'wx+');

// Synchronous calls: nothing else is to be done meanwhile, and the way through the thread pool costs more.
let written = 0;
function append(): void {
  writeSync(file, record);
  written += 1;
  if (written % loop.syncEvery === 0) fdatasyncSync(file);
}

let position = 0;
function read(): void {
  position += readSync(file, record, 0, record.length, position);
}

if (loop.does === 'read') for (let count = 0; count < loop.count; count += 1) append();
const result = await (loop.does === 'append' ? timedLoop(loop, append) : timedCount(loop.count, read));
unlinkSync(path);
endWithResult(result);
