import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Load } from './load-generator.js';
import { Stopwatch } from './measurement.js';
import { messageOf, topicOf } from './messages.js';
import { cpuMsBetween, cpuMsOf } from './process-usage.js';
import { endWithResult, programInput } from './program.js';

const ANSWER_BUFFER_BYTES = 16 * 1024;
const CONTENT_LENGTH = /\r\ncontent-length: (\d+)\r\n/i;

/** One connection with one request on it at a time. The requests are ready made, and an answer is read only as far as it has to be. */
class Client {
  private socket: Socket | undefined;
  private sentAtMs = 0;
  private answer = '';

  constructor(
    private readonly requests: readonly Buffer[],
    private next: number,
    private readonly stopwatch: Stopwatch,
  ) {}

  connectTo(url: URL): void {
    const buffer = Buffer.allocUnsafe(ANSWER_BUFFER_BYTES);
    const callback = (bytes: number): boolean => this.receive(buffer.toString('latin1', 0, bytes));
    this.socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true, onread: { buffer, callback } });
    this.socket.on('connect', () => this.send());
    this.socket.on('end', () => fail('the server closed the connection'));
    this.socket.on('error', (error) => fail(error.message));
  }

  private send(): void {
    const request = this.requests[this.next % this.requests.length];
    this.next += 1;
    this.sentAtMs = performance.now();
    if (request !== undefined) this.socket?.write(request);
  }

  private receive(text: string): boolean {
    this.answer += text;
    const headEnd = this.answer.indexOf('\r\n\r\n');
    if (headEnd === -1) return true;
    if (!this.answer.startsWith('HTTP/1.1 200 ')) fail(`this is no 200: ${this.answer}`);
    const bodyBytes = CONTENT_LENGTH.exec(this.answer)?.[1] ?? fail(`this has no content-length: ${this.answer}`);
    if (this.answer.length < headEnd + 4 + Number(bodyBytes)) return true;
    this.answer = '';
    this.stopwatch.record(performance.now() - this.sentAtMs);
    this.send();
    return true;
  }
}

function fail(reason: string): never {
  throw new Error(`a publish failed: ${reason}`);
}

function requestTo(url: URL, topic: string, { messageBytes, messagesPerRequest }: Load): Buffer {
  const message = messageOf(topic, messageBytes);
  const body = messagesPerRequest === undefined ? message : `${message}\n`.repeat(messagesPerRequest);
  const contentType = messagesPerRequest === undefined ? 'application/json' : 'application/x-ndjson';
  const head = [`POST ${url.pathname} HTTP/1.1`, `host: ${url.host}`, `content-type: ${contentType}`, `content-length: ${body.length}`];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}

const load = programInput<Load>();
const url = new URL(load.url);
const requests = Array.from({ length: load.topics }, (_, index) => requestTo(url, topicOf(index), load));
const stopwatch = new Stopwatch();
const clients = Array.from({ length: load.clients }, (_, index) => new Client(requests, index, stopwatch));
for (const client of clients) client.connectTo(url);

// The first publish makes the topic, and everybody waits for that.
while (stopwatch.count < load.clients) await setImmediate();
await setTimeout(load.warmUpMs);
const serverCpuBefore = cpuMsOf(load.serverPid);
const ownCpuBefore = process.cpuUsage();
stopwatch.begin();
await setTimeout(load.measureMs);
while (stopwatch.count === 0) await setImmediate();
const { user, system } = process.cpuUsage(ownCpuBefore);
const serverCpuMs = cpuMsBetween(serverCpuBefore, cpuMsOf(load.serverPid));
const generatorCpuShare = (user + system) / 1_000 / stopwatch.elapsedMs;
endWithResult({ ...stopwatch.measurement(serverCpuMs), generatorCpuShare });
