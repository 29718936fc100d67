import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type NodeProcess, nodeProcesses } from '../support/node-process.js';
import { temporaryDirectories } from '../support/temporary-directory.js';

const DEMO = join(import.meta.dirname, '../../examples/dist/demo/main.js');
const TIMEOUT_MS = 60_000;

const newDirectory = temporaryDirectories();
const start = nodeProcesses();
const occupied: Server[] = [];
afterEach(async () => {
  for (const server of occupied.splice(0)) await new Promise((resolve) => server.close(resolve));
});

/** Sees to it that somebody listens on the port: this test, or whoever does already. */
async function occupy(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve() : reject(error)));
    server.listen(port, '127.0.0.1', () => {
      occupied.push(server);
      resolve();
    });
  });
}

/** What the printed curl line sends, and where. */
async function curlLine(demo: NodeProcess): Promise<{ url: string; body: string; header: string }> {
  const [, header = '', body = '', url = ''] = await demo.printed(/curl -H '([^']+)' -d '([^']+)' (\S+)\n/);
  return { url, body, header };
}

describe('the demo', () => {
  it(
    'shows three messages acknowledged and arriving, then one that is sent with its curl line, and ends with 0 on Ctrl-C without its data',
    async () => {
      const demo = start(DEMO, { cwd: await newDirectory(), env: { TMPDIR: await newDirectory() } });
      const { url, body, header } = await curlLine(demo);
      const shown = demo.output.split('\n').filter((line) => /^ {2}(answer|arrived) /.test(line));
      expect(shown).toEqual([
        '  answer    {"acknowledgement":"ACK","topic":"order.created","offset":0}',
        '  arrived   order.created offset 0: {"id":1,"item":"tea"}',
        '  answer    {"acknowledgement":"ACK","topic":"order.paid","offset":0}',
        '  arrived   order.paid offset 0: {"id":1,"amount":4.5}',
        '  answer    {"acknowledgement":"ACK","topic":"order.created","offset":1}',
        '  arrived   order.created offset 1: {"id":2,"item":"coffee"}',
      ]);
      const dataDir = /its data in (\S+)/.exec(demo.output)?.[1] ?? '';
      expect(existsSync(join(dataDir, 'order.created'))).toBe(true);

      const [name = '', value = ''] = header.split(': ');
      const response = await fetch(url, { method: 'POST', headers: { [name]: value }, body });
      expect(await response.json()).toEqual({ acknowledgement: 'ACK', topic: 'order.created', offset: 2 });
      await demo.printed(/arrived {3}order\.created offset 2: \{"id":3,"item":"cake"\}/);

      expect(await demo.end('SIGINT')).toEqual({ code: 0, signal: null });
      expect(demo.errors).toBe('');
      expect(existsSync(dataDir)).toBe(false);
    },
    TIMEOUT_MS,
  );

  it(
    'takes other ports and says which when its own are taken',
    async () => {
      await occupy(8080);
      await occupy(8081);
      const demo = start(DEMO, { cwd: await newDirectory(), env: { TMPDIR: await newDirectory() } });
      const { url } = await curlLine(demo);
      expect(new URL(url).port).not.toBe('8080');
      expect(demo.output).toContain(`Port 8080 is taken, so the broker is on ${new URL(url).origin}\n`);
      expect(demo.output).toMatch(/Port 8081 is taken, so the consumer is on http:\/\/127\.0\.0\.1:\d+\n/);
      expect(await demo.end('SIGINT')).toEqual({ code: 0, signal: null });
    },
    TIMEOUT_MS,
  );

  it(
    'says in one line why it cannot start',
    async () => {
      const demo = start(DEMO, { cwd: await newDirectory(), env: { TMPDIR: join(await newDirectory(), 'missing') } });
      expect(await demo.ended()).toEqual({ code: 1, signal: null });
      expect(demo.errors).toMatch(/^The demo cannot go on: ENOENT: .*missing[^\n]*\n$/);
    },
    TIMEOUT_MS,
  );
});
