import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Agent } from 'undici';
import { Host } from '../../core/index.js';
import { TransportError, UndiciTransport, type TransportAnswer } from './index.js';

const stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

/** @returns its URL */
async function serve(listener: RequestListener): Promise<string> {
  const server: Server = createHttpServer(listener);
  return listening(server);
}

async function listening(server: Server | ReturnType<typeof createServer>): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function transportTo(url: string, agent?: Agent): UndiciTransport {
  const transport = new UndiciTransport(Host.of(url), { connections: 2, connectTimeoutMs: 10_000, agent });
  stops.push(() => transport.close());
  return transport;
}

function send(transport: UndiciTransport, signal: AbortSignal = new AbortController().signal): Promise<TransportAnswer> {
  return transport.send({
    path: '/messages',
    headers: { 'content-type': 'application/json', a: 'b' },
    body: Buffer.from('{"a":1}'),
    signal,
  });
}

describe('the network of a producer', () => {
  it('posts the bytes below the path of the broker, and gives the whole answer', async () => {
    const asked: unknown[] = [];
    const url = await serve((request, response) => {
      request.setEncoding('utf8').on('data', (body: string) => asked.push([request.method, request.url, request.headers['a'], body]));
      request.on('end', () => response.writeHead(507, { 'retry-after': '3' }).end('{"b":2}'));
    });
    const { status, headers, body } = await send(transportTo(`${url}/api/`));
    expect([status, headers['retry-after'], body.toString()]).toEqual([507, '3', '{"b":2}']);
    expect(asked).toEqual([['POST', '/api/messages', 'b', '{"a":1}']]);
  });

  it('follows no redirect', async () => {
    let requests = 0;
    const url = await serve((_request, response) => {
      requests += 1;
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    expect((await send(transportTo(url))).status).toBe(307);
    expect(requests).toBe(1);
  });

  it('knows that nothing was written where there is no connection', async () => {
    const server = createServer();
    const url = await listening(server);
    await stops.pop()?.();
    await expect(send(transportTo(url))).rejects.toMatchObject({ written: false, reason: 'connection refused (ECONNREFUSED)' });
  });

  it.each([
    ['before the answer', (socket: Socket) => socket.destroy()],
    ['in the middle of the answer', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"ack')],
    ['with a reset', (socket: Socket) => socket.resetAndDestroy()],
    ['behind something that is no answer', (socket: Socket) => socket.end('hello\r\n')],
  ])('does not know what was written where the connection ends %s', async (_when, end) => {
    const url = await listening(createServer((socket) => socket.on('error', () => undefined).once('data', () => end(socket))));
    const error = await send(transportTo(url)).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(TransportError);
    expect((error as TransportError).written).toBe(true);
  });

  it('ends an attempt at once when it is told to, and with it the connection', async () => {
    const closed: Promise<unknown>[] = [];
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const url = await serve((request) => {
      closed.push(once(request.socket, 'close'));
      begin();
    });
    const end = new AbortController();
    const sent = send(transportTo(url), end.signal).catch((error: unknown) => error);
    await begun;
    end.abort();
    expect(await sent).toMatchObject({ written: true, reason: 'given up' });
    await closed[0];
  });

  it('sends nothing of an attempt that was ended before there was a connection for it', async () => {
    let requests = 0;
    const url = await serve((_request, response) => {
      requests += 1;
      response.end('ok');
    });
    const end = new AbortController();
    const transport = transportTo(url);
    const sent = send(transport, end.signal).catch((error: unknown) => error);
    end.abort();
    expect(await sent).toMatchObject({ written: false });
    expect((await send(transport)).status).toBe(200);
    expect(requests).toBe(1);
  });

  it('reads no answer that is larger than any broker gives', async () => {
    const url = await serve((_request, response) => response.writeHead(200, { 'content-length': 5_000_000 }).end(Buffer.alloc(5_000_000)));
    await expect(send(transportTo(url))).rejects.toMatchObject({ written: true, reason: 'the answer is larger than 4194304 bytes' });
    const chunked = await serve((_request, response) => {
      for (let chunk = 0; chunk < 50; chunk += 1) response.write(Buffer.alloc(100_000));
      response.end();
    });
    await expect(send(transportTo(chunked))).rejects.toMatchObject({ written: true, reason: 'the answer is larger than 4194304 bytes' });
  });

  it('goes through an agent that it is given, and leaves it open', async () => {
    const agent = new Agent();
    stops.push(() => agent.close());
    const url = await serve((_request, response) => response.end('ok'));
    const transport = transportTo(url, agent);
    expect((await send(transport)).status).toBe(200);
    await transport.close();
    expect((await send(transportTo(url, agent))).status).toBe(200);
  });
});
