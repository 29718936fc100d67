import { once } from 'node:events';
import { cp, mkdir, truncate } from 'node:fs/promises';
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { brokerProcesses, type BrokerProcess, type BrokerProcessOptions } from '../support/broker-process.js';
import { fileEngine, readTexts } from '../support/file-engine.js';
import { silence, status, TestConsumer } from '../support/test-consumer.js';
import { snapshot, temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';

/** So many starts are cut off, at moments spread over the time that a start takes. */
const STARTS_CUT_OFF = 10;

const { spawn, start } = brokerProcesses();
const newDirectory = temporaryDirectories();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

/** What a broker that does not start says, and the code it ends with. */
async function refusal(options: BrokerProcessOptions): Promise<{ code: number | null; message: string }> {
  const broker = await spawn(options);
  const { code } = await broker.ended();
  expect(broker.output).not.toContain('is ready');
  return { code, message: broker.errors };
}

/** Begins a publish whose body stops in the middle, and waits until the broker has its headers: one that is told to stop waits for it. */
async function publishByHalf({ url }: BrokerProcess): Promise<{ request: ClientRequest; rest: string }> {
  const { hostname, port } = new URL(url);
  const body = '{"topic":"order.created","content":"under way"}';
  const headers = { 'content-type': 'application/json', 'content-length': body.length, expect: '100-continue' };
  const request = httpRequest({ hostname, port, method: 'POST', path: '/messages', headers });
  request.write(body.slice(0, 10));
  await once(request, 'continue');
  return { request, rest: body.slice(10) };
}

const dispatcherConfig = (name: string, url: string, patterns: string): string =>
  `    - { name: ${name}, host: '${url}', patterns: ['${patterns}'], timeout-ms: 60000, backoff: { initial-ms: 10, max-ms: 50 } }`;

describe('the broker as a process', () => {
  it('prints one line when it is ready, answers its health, and ends with 0 on SIGTERM', async () => {
    const cwd = await newDirectory();
    const broker = await start({ cwd });
    expect(broker.output.match(/mmmq is ready on http:\/\/127\.0\.0\.1:\d+ with the data directory .*\/data\n/g)).toHaveLength(1);
    expect((await fetch(`${broker.url}/health/live`)).status).toBe(200);
    const ready = await fetch(`${broker.url}/health/ready`);
    expect([ready.status, await ready.json()]).toMatchObject([200, { status: 'ok', info: { broker: { status: 'up' } } }]);
    const published = await broker.publish({ topic: 'order.created', content: 1 });
    expect([published.status, published.headers.get('x-powered-by'), published.headers.get('etag')]).toEqual([200, null, null]);
    expect(await broker.end('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(broker.errors).toBe('');
  });

  it('ends with 0 on SIGINT too', async () => {
    const broker = await start({ cwd: await newDirectory() });
    expect(await broker.end('SIGINT')).toEqual({ code: 0, signal: null });
  });

  it('hears signals before it loads anything else, and ends with 0 in the middle of that', async () => {
    // Tells when the first listener is there, and whether what main.js loads is there already; then the signal comes.
    const watch = `
      process.on('newListener', function tell(event) {
        if (event !== 'SIGTERM') return;
        process.off('newListener', tell);
        console.log('nest is loaded: ' + (Reflect.getMetadata !== undefined));
        setImmediate(() => process.kill(process.pid, 'SIGTERM'));
      });`;
    const nodeArguments = ['--import', `data:text/javascript,${encodeURIComponent(watch)}`];
    const broker = await spawn({ cwd: await newDirectory(), nodeArguments });
    expect(await broker.ended()).toEqual({ code: 0, signal: null });
    expect([broker.output, broker.errors]).toEqual(['nest is loaded: false\nmmmq stops on SIGTERM, before it was ready\n', '']);
  });

  it('ends with 0 on a signal at any moment of its start', async () => {
    // A start that has something to look at.
    const cwd = await newDirectory();
    const { engine } = fileEngine(join(cwd, 'data'));
    await engine.open();
    for (let topic = 0; topic < 40; topic += 1) await (await engine.create(`topic.${topic}`)).append([Buffer.from('{}')]);
    await engine.close();
    const tell = `
      import { writeSync } from 'node:fs';
      process.on('newListener', (event) => {
        if (event === 'SIGTERM') queueMicrotask(() => writeSync(1, 'it hears'));
      });`;
    const nodeArguments = ['--import', `data:text/javascript,${encodeURIComponent(tell)}`];
    const begunAtMs = performance.now();
    await (await start({ cwd, nodeArguments })).end('SIGKILL');
    const startMs = performance.now() - begunAtMs;
    for (let round = 0; round < STARTS_CUT_OFF; round += 1) {
      const broker = await spawn({ cwd, nodeArguments });
      const atMs = performance.now() + (startMs * round) / STARTS_CUT_OFF;
      await until(() => performance.now() >= atMs);
      const signal = round % 2 === 0 ? 'SIGTERM' : 'SIGINT';
      const end = await broker.end(signal);
      // Before Node itself has come to the program, nobody can hear anything.
      const isHeard = end.signal === null || broker.output.includes('it hears');
      expect([round, end, broker.errors]).toEqual([round, isHeard ? { code: 0, signal: null } : { code: null, signal }, '']);
    }
  });

  it('delivers exactly the rest of the golden directory to its two dispatchers', async () => {
    const cwd = await newDirectory();
    await cp(join(import.meta.dirname, '../golden/mmmq/data'), join(cwd, 'data'), { recursive: true });
    const [orders, audit] = [await TestConsumer.start(), await TestConsumer.start()];
    stops.push(
      () => orders.stop(),
      () => audit.stop(),
    );
    const config = [
      'mmmq:',
      '  broker: { segment: { max-bytes: 400 } }',
      '  dispatchers:',
      dispatcherConfig('order-dispatcher', orders.url, 'order.**'),
      dispatcherConfig('audit-dispatcher', audit.url, '**'),
    ].join('\n');
    const broker = await start({ cwd, config });
    for (const consumer of [orders, audit]) await consumer.until((all) => all.length === 5);
    await broker.end('SIGTERM');
    const { engine } = fileEngine(join(cwd, 'data'), { segmentMaxBytes: 400 });
    const topics = await engine.open();
    const topic = topics.find((candidate) => candidate.topic === 'order.created');
    const stored = topic === undefined ? [] : await readTexts(topic, 5);
    for (const consumer of [orders, audit]) {
      expect(consumer.received.map((delivery) => [delivery.topic, delivery.offset])).toEqual(
        [5, 6, 7, 8, 9].map((offset) => ['order.created', offset]),
      );
      expect(consumer.received.map((delivery) => delivery.body)).toEqual(stored);
    }
    await engine.close();
  });

  it.each([
    ['mmmq:\n  broker: { segment: { max-byte: 1 } }', {}, /mmmq\.broker\.segment\.max-byte.*config\/mmmq\.yaml:2/],
    [
      'mmmq:\n  broker: { segment: { max-bytes: lots } }',
      {},
      /mmmq\.broker\.segment\.max-bytes = "lots": must be a whole number.*config\/mmmq\.yaml:2/,
    ],
    ['server: { port: 65536 }', { SERVER_PORT: '' }, /SERVER_PORT/],
    ['', { SERVER_PORT: '80a' }, /server\.port = "80a": must be a whole number from 0 to 65535 \(environment variable SERVER_PORT\)/],
    ['', { MMMQ_BROKER_STORAGE_ROOTDIR: 'x' }, /MMMQ_BROKER_STORAGE_ROOTDIR/],
    ['', { MMMQ_CONFIG_FILE: 'not-there.yaml' }, /not-there\.yaml/],
    ['', { SERVER_HOST: '203.0.113.7' }, /EADDRNOTAVAIL.*set server\.host/],
  ])('does not start with settings that are wrong: %j %j', async (config, env, says) => {
    const { code, message } = await refusal({ cwd: await newDirectory(), config, env: { ...env } });
    expect(code).toBe(1);
    expect(message).toMatch(/^mmmq: /);
    expect(message).toMatch(says);
    expect(message).not.toMatch(/\n\s+at /);
  });

  it('does not start on a port that is taken, and says which', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { code, message } = await refusal({ cwd: await newDirectory(), env: { SERVER_PORT: String(port) } });
    server.close();
    expect(code).toBe(1);
    expect(message).toBe(
      `mmmq: listen EADDRINUSE: address already in use 127.0.0.1:${port}: another process listens there; set server.port or SERVER_PORT\n`,
    );
  });

  it('does not start on a data directory that another broker has, which goes on undisturbed', async () => {
    const cwd = await newDirectory();
    const broker = await start({ cwd });
    await broker.publish({ topic: 'order.created', content: 1 });
    const before = await snapshot(join(cwd, 'data'));
    const { code, message } = await refusal({ cwd });
    expect(code).toBe(1);
    expect(message).toContain(`in use by another broker (process ${broker.pid})`);
    expect(await snapshot(join(cwd, 'data'))).toEqual(before);
    expect((await broker.publish({ topic: 'order.created', content: 2 })).status).toBe(200);
  });

  it('does not start on a corrupt directory, names the file and changes nothing', async () => {
    const cwd = await newDirectory();
    await cp(join(import.meta.dirname, '../golden/mmmq/data'), join(cwd, 'data'), { recursive: true });
    await truncate(join(cwd, 'data/order.created/0000000000000000005.mmm'), 400);
    const before = await snapshot(join(cwd, 'data'));
    const { code, message } = await refusal({ cwd });
    expect(code).toBe(1);
    expect(message).toMatch(/nothing in it was changed:\n {2}\S*order\.created\/0000000000000000005\.mmm, byte 372: .*restore/);
    expect(await snapshot(join(cwd, 'data'))).toEqual(before);
  });

  it('answers a publish that is under way when it is told to stop, ends although clients keep their connections, and has what it ACKed', async () => {
    const cwd = await newDirectory();
    const broker = await start({ cwd });
    // A keep-alive client that stays, and one whose request has not arrived whole.
    await broker.publish({ topic: 'order.created', content: 'first' });
    const { request, rest } = await publishByHalf(broker);
    broker.kill('SIGTERM');
    await broker.printed(/mmmq stops on SIGTERM/);
    request.end(rest);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    expect(await broker.ended()).toEqual({ code: 0, signal: null });
    const { engine } = fileEngine(join(cwd, 'data'));
    const [topic] = await engine.open();
    const stored = topic === undefined ? [] : await readTexts(topic);
    expect(stored).toHaveLength(response.statusCode === 200 ? 2 : 1);
    await engine.close();
  });

  it('ends at once when it is told again, and not with 0: a publish under way has no answer', async () => {
    const broker = await start({ cwd: await newDirectory() });
    const { request } = await publishByHalf(broker);
    const broken = once(request, 'error');
    broker.kill('SIGTERM');
    await broker.printed(/mmmq stops on SIGTERM/);
    // What follows closely is taken for the same signal, so whoever does not want to wait goes on asking.
    const asking = setInterval(() => broker.kill('SIGINT'), 100);
    expect(await broker.ended().finally(() => clearInterval(asking))).toEqual({ code: 1, signal: null });
    expect(await broken).toMatchObject([{ code: 'ECONNRESET' }]);
  });

  it('takes a signal that comes twice in one go for one, and still drains', async () => {
    const broker = await start({ cwd: await newDirectory() });
    const { request, rest } = await publishByHalf(broker);
    broker.kill('SIGINT');
    broker.kill('SIGTERM');
    await broker.printed(/mmmq stops on /);
    request.end(rest);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    expect(await broker.ended()).toEqual({ code: 0, signal: null });
  });

  it.each([
    ['an exception', "throw new Error('nobody caught this')"],
    ['a rejection', "void Promise.reject(new Error('nobody caught this'))"],
  ])('ends with 1 and one message after %s that nobody caught, rather than go on half alive', async (_what, mistake) => {
    const module = `data:text/javascript,${encodeURIComponent(`process.once('SIGUSR2', () => { ${mistake}; });`)}`;
    const broker = await start({ cwd: await newDirectory(), nodeArguments: ['--import', module] });
    expect(await broker.end('SIGUSR2')).toEqual({ code: 1, signal: null });
    expect(broker.errors).toMatch(/^mmmq: Error: nobody caught this\n( {4}at .*\n)+$/);
  });

  it('lives on when nobody reads its log any more: publishes are acknowledged, deliveries tried again, and it ends with 0', async () => {
    const cwd = await newDirectory();
    const consumer = await TestConsumer.start(status(500));
    stops.push(() => consumer.stop());
    const config = ['mmmq:', '  dispatchers:', dispatcherConfig('orders', consumer.url, '**')].join('\n');
    const broker = await start({ cwd, config });
    broker.closeOutputs();
    // Each attempt that fails is logged before the next one.
    expect((await broker.publish({ topic: 'order.created', content: 1 })).status).toBe(200);
    const delivered = consumer.until((all) => all.length === 3).then(() => 'tried three times');
    expect(await Promise.race([delivered, broker.ended()])).toBe('tried three times');
    expect((await broker.publish({ topic: 'order.created', content: 2 })).status).toBe(200);
    expect(await broker.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  it('ends within its bound although a consumer never answers, and delivers that message again after the next start', async () => {
    const cwd = await newDirectory();
    const consumer = await TestConsumer.start(silence);
    stops.push(() => consumer.stop());
    const config = ['mmmq:', '  dispatchers:', dispatcherConfig('orders', consumer.url, '**')].join('\n');
    const broker = await start({ cwd, config });
    await broker.publish({ topic: 'order.created', content: 1 });
    await consumer.until((all) => all.length === 1);
    expect(await broker.end('SIGTERM')).toEqual({ code: 0, signal: null });
    await start({ cwd, config });
    const deliveries = await consumer.until((all) => all.length === 2);
    expect(deliveries.map(({ offset, attempt }) => [offset, attempt])).toEqual([
      [0, 1],
      [0, 1],
    ]);
  });

  it('listens on loopback only, unless it is told otherwise', async () => {
    const broker = await start({ cwd: await newDirectory() });
    expect(new URL(broker.url).hostname).toBe('127.0.0.1');
    const everywhere = await start({ cwd: await newDirectory(), env: { SERVER_HOST: '::1' } });
    expect(everywhere.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await everywhere.publish({ topic: 't', content: 1 })).status).toBe(200);
  });

  it('makes its data directory where it is told', async () => {
    const cwd = await newDirectory();
    await mkdir(join(cwd, 'elsewhere'));
    const broker = await start({ cwd, env: { MMMQ_BROKER_STORAGE_ROOT_DIR: './elsewhere/messages' } });
    await broker.publish({ topic: 'order.created', content: 1 });
    expect(Object.keys(await snapshot(join(cwd, 'elsewhere')))).toContain('messages/order.created/0000000000000000000.mmm');
  });
});
