import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below what systems give to outgoing connections, one of which could take the port between this look and the server's start. */
const LOWEST = 12_000;
const HIGHEST = 32_000;

/** A port of 127.0.0.1 that nobody listens on, for servers that cannot say which one they took. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return false;
  }
  await once(server.close(), 'close');
  return true;
}
