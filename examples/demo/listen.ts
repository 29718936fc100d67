import { once } from 'node:events';
import { createServer } from 'node:net';
import { type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

const ADDRESS = '127.0.0.1';

export interface ListeningApplication {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts an application on the port, or on any free one where that is taken. */
export async function listen(name: string, module: DynamicModule, preferredPort: number): Promise<ListeningApplication> {
  const app = await NestFactory.create(module, { logger: ['error', 'warn'], abortOnError: false });
  const port = (await isFree(preferredPort)) ? preferredPort : 0;
  await app.listen(port, ADDRESS);
  const url = await app.getUrl();
  if (port === 0) console.log(`Port ${preferredPort} is taken, so the ${name} is on ${url}`);
  return { url, close: () => app.close() };
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, ADDRESS), 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
