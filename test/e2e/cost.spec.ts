import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { PublishBodyReader } from '../../src/broker/publish-body.reader.js';
import type { File, OpenMode } from '../../src/storage/file-system/index.js';
import { brokerApplication } from '../support/broker-application.js';
import { FaultyFileSystem } from '../support/faulty-file-system.js';
import { Gate } from '../support/gate.js';
import { heapAfterCollection } from '../support/heap.js';
import { nodeProcesses } from '../support/node-process.js';
import { RawHttp } from '../support/raw-http.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
const newDirectory = temporaryDirectories();
const start = nodeProcesses();

/** A disk whose syncs of segments wait while they are held, and that says how many do. */
class SlowDisk extends FaultyFileSystem {
  held: Gate | undefined;
  waiting = 0;

  override async open(path: string, mode: OpenMode): Promise<File> {
    const file = await super.open(path, mode);
    if (!path.endsWith('.mmm')) return file;
    const sync = file.sync.bind(file);
    return Object.assign(file, {
      sync: async () => {
        this.waiting += 1;
        await this.held?.opened;
        this.waiting -= 1;
        await sync();
      },
    });
  }
}

const messageOfBytes = (bytes: number): string => {
  const empty = '{"topic":"t","content":""}';
  return `${empty.slice(0, -2)}${'x'.repeat(bytes - empty.length)}"}`;
};
const publishOf = (body: string): string =>
  `POST /messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

describe('a publish costs', () => {
  let app: INestApplication;
  let port: number;
  let disk: SlowDisk;
  let http: RawHttp;

  async function open(broker: object = {}): Promise<void> {
    disk = new SlowDisk();
    ({ app, port } = await brokerApplication({ fileSystem: disk, broker: { storage: { rootDir: await newDirectory() }, ...broker } }));
    http = await RawHttp.to(port);
    await answersTo(1, messageOfBytes(256));
    disk.calls.length = 0;
  }

  async function answersTo(count: number, body: string): Promise<void> {
    http.send(publishOf(body).repeat(count));
    for (let answered = 0; answered < count; answered += 1) expect(await http.answer()).toMatchObject({ status: 200 });
  }

  afterEach(async () => {
    disk.held?.open();
    http.socket.destroy();
    await app.close();
  });

  const SEGMENT = '0000000000000000000.mmm';
  const INDEX = '0000000000000000000.idx';
  const PASS = [`write ${SEGMENT}`, `sync ${SEGMENT}`, `write ${INDEX}`, `sync ${INDEX}`];

  it('one write and one sync of each of two files when it is alone', async () => {
    await open();
    await answersTo(1, messageOfBytes(256));
    expect(disk.calls).toEqual(PASS);
  });

  it('its share of them when others wait with it: whatever has come while a pass is on its way is the next one', async () => {
    await open();
    disk.held = new Gate();
    const { pending } = app.get(PublishBodyReader);
    const body = messageOfBytes(256);
    http.send(publishOf(body));
    await until(() => disk.waiting === 1);
    http.send(publishOf(body).repeat(63));
    await until(() => pending.count === 64);
    disk.held.open();
    for (let answered = 0; answered < 64; answered += 1) expect(await http.answer()).toMatchObject({ status: 200 });
    expect(disk.calls).toEqual([...PASS, ...PASS]);
  });

  it('two copies of its bytes: with its time stamp, and into the buffer of its pass', async () => {
    await open();
    const body = messageOfBytes(8_000);
    const copied: number[] = [];
    const { copy } = Buffer.prototype;
    const concat = jest.spyOn(Buffer, 'concat');
    const spy = jest.spyOn(Buffer.prototype, 'copy').mockImplementation(function (this: Buffer, ...args: unknown[]) {
      const bytes = Reflect.apply(copy, this, args) as number;
      copied.push(bytes);
      return bytes;
    } as never);
    try {
      await answersTo(1, body);
      expect(copied.filter((bytes) => bytes > body.length / 2)).toHaveLength(2);
      expect(concat).not.toHaveBeenCalled();
    } finally {
      spy.mockRestore();
      concat.mockRestore();
    }
  });
});

/** Sends so many publishes at once, each on a connection of its own, and prints each status as it comes. */
const FLOOD = `
import { connect } from 'node:net';
const [port, count, bytes] = [process.env.PORT, process.env.COUNT, process.env.BYTES].map(Number);
const body = JSON.stringify({ topic: 't', content: 'x'.repeat(bytes) });
const request = Buffer.from('POST /messages HTTP/1.1\\r\\nhost: x\\r\\ncontent-type: application/json\\r\\ncontent-length: ' + body.length + '\\r\\n\\r\\n' + body);
for (let sent = 0; sent < count; sent += 1) {
  const socket = connect(port, '127.0.0.1', () => socket.write(request));
  socket.once('data', (data) => console.log('status ' + data.toString().slice(9, 12)));
  socket.on('error', () => undefined);
}
`;

describe('a flood on a disk that hangs', () => {
  let app: INestApplication;
  const held = new Gate();

  afterEach(async () => {
    held.open();
    await app.close();
  });

  it('takes no more memory than the bound on pending publishes allows, is refused beyond it, and stored when the disk goes on', async () => {
    const disk = new SlowDisk();
    disk.held = held;
    const dir = await newDirectory();
    const maxBytes = 16 * MIB;
    const count = 160;
    const broker = { storage: { rootDir: join(dir, 'data') }, message: { maxBytes: MIB }, batch: { maxBytes: MIB }, pending: { maxBytes } };
    let port: number;
    ({ app, port } = await brokerApplication({ fileSystem: disk, broker }));
    await writeFile(join(dir, 'flood.mjs'), FLOOD);
    const before = heapAfterCollection();

    const flood = start(join(dir, 'flood.mjs'), { cwd: dir, env: { PORT: String(port), COUNT: String(count), BYTES: String(MIB - 100) } });
    const statuses = (): readonly string[] => flood.output.match(/(?<=status )\d+/g) ?? [];
    const { pending } = app.get(PublishBodyReader);
    await until(() => statuses().length + pending.count === count);
    expect(new Set(statuses())).toEqual(new Set(['429']));
    expect(pending.count).toBeGreaterThan(12);
    expect(pending.bytes).toBeLessThanOrEqual(maxBytes);
    // A body's buffer may be twice what has come; the pass that is on its way has two copies more. All that was sent is ten times the bound.
    expect(heapAfterCollection() - before).toBeLessThan(5 * maxBytes);

    const waiting = pending.count;
    held.open();
    await until(() => statuses().length === count);
    expect(statuses().filter((status) => status === '200')).toHaveLength(waiting);
    await until(() => pending.bytes === 0);
  });
});
