import * as fs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { crc32c } from '@node-rs/crc32';
import { serveBare } from '../harness/bare-http-server.js';
import { programInput } from '../harness/program.js';

/*
 * Yardstick G: bare node:http in front of a group commit that keeps the same files in the same order as the broker, and has no Nest, no
 * checks, no recovery, no rotation. Given the directory to write to.
 */
const write = promisify(fs.write);
const fdatasync = promisify(fs.fdatasync);

interface Waiting {
  readonly body: Buffer;
  readonly onStored: (offset: number) => void;
}

/** One topic's two files. Whoever comes while a pass is under way is in the next one. */
class TopicFiles {
  private readonly segment: number;
  private readonly index: number;
  private waiting: Waiting[] = [];
  private isPassing = false;
  private count = 0;
  private endPosition = 0;

  constructor(directory: string, topic: string) {
    this.segment = fs.openSync(join(directory, `${topic}.mmm`), 'wx');
    this.index = fs.openSync(join(directory, `${topic}.idx`), 'wx');
  }

  append(body: Buffer, onStored: (offset: number) => void): void {
    this.waiting.push({ body, onStored });
    if (!this.isPassing) void this.work();
  }

  private async work(): Promise<void> {
    this.isPassing = true;
    while (this.waiting.length > 0) await this.pass(this.waiting.splice(0));
    this.isPassing = false;
  }

  private async pass(taken: readonly Waiting[]): Promise<void> {
    const parts: Buffer[] = [];
    const positions = Buffer.allocUnsafe(taken.length * 8);
    let position = this.endPosition;
    for (const [index, { body }] of taken.entries()) {
      const header = Buffer.allocUnsafe(8);
      header.writeInt32BE(4 + body.length, 0);
      header.writeUInt32BE(crc32c(body), 4);
      parts.push(header, body);
      positions.writeBigInt64BE(BigInt(position), index * 8);
      position += header.length + body.length;
    }
    const entries = Buffer.concat(parts);
    await write(this.segment, entries, 0, entries.length, this.endPosition);
    await fdatasync(this.segment);
    await write(this.index, positions, 0, positions.length, this.count * 8);
    await fdatasync(this.index);
    this.endPosition = position;
    for (const { onStored } of taken) {
      onStored(this.count);
      this.count += 1;
    }
  }
}

const directory = programInput<string>();
const topics = new Map<string, TopicFiles>();

function filesOf(topic: string): TopicFiles {
  const known = topics.get(topic);
  if (known !== undefined) return known;
  const files = new TopicFiles(directory, topic);
  topics.set(topic, files);
  return files;
}

serveBare((body, answer) => {
  const { topic } = JSON.parse(body.toString()) as { readonly topic: string };
  filesOf(topic).append(body, (offset) => answer(`{"acknowledgement":"ACK","topic":"${topic}","offset":${offset}}`));
});
