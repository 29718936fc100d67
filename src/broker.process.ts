import type { AddressInfo } from 'node:net';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Server } from 'node:http';
import { AppModule } from './app.module.js';
import { BrokerLogger } from './broker.logger.js';
import { MmmqError } from './core/index.js';
import { BrokerExpressAdapter } from './express/index.js';
import { settingsConfiguration, type Settings } from './settings/index.js';
import type { StopSignal, StopSignals } from './stop-signals.js';
import { TopicQueueService } from './topic-queue/index.js';

/** A request has so long to arrive whole, its headers so long on their own. */
const REQUEST_TIMEOUT_MS = 60_000;
const HEADERS_TIMEOUT_MS = 20_000;
/** Longer than the clients that keep connections open usually do, so that it is they who close an idle one. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/** What is under way when the process is told to stop has so long to finish. */
const DRAIN_DEADLINE_MS = 10_000;
const CLOSE_IDLE_CONNECTIONS_EVERY_MS = 50;
/** Signals that follow the first so closely are the same one. */
const REPEATED_SIGNAL_MS = 500;
/** Whatever happens, the process is gone after this. */
const STOP_DEADLINE_MS = 20_000;

/**
 * The broker as a process of its own: it starts or says in one message why not, prints one line when it is ready, drains on SIGTERM and
 * SIGINT and ends with 0, and ends with 1 after an error that nobody caught, rather than go on half alive.
 *
 * A start is not waited for when a signal comes in the middle of it: it may take minutes, and it can be cut off anywhere, as by a crash.
 */
export async function runBroker(signals: StopSignals): Promise<void> {
  // A rejection that nobody handles comes here too.
  process.on('uncaughtException', (error) => end(error));
  // A log that nobody reads any more is no reason to stop delivering.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  try {
    const app = await NestFactory.create<NestExpressApplication>(AppModule, new BrokerExpressAdapter(), {
      bodyParser: false,
      abortOnError: false,
      logger: new BrokerLogger(),
    });
    app.disable('x-powered-by');
    const server: Server = app.getHttpServer();
    server.requestTimeout = REQUEST_TIMEOUT_MS;
    server.headersTimeout = HEADERS_TIMEOUT_MS;
    server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
    await app.init();
    signals.handTo(stopperOf(app));
    const settings: Settings = app.get(settingsConfiguration.KEY);
    await app.listen(settings.server.port, settings.server.host);
    console.log(`mmmq is ready on ${urlOf(server)} with the data directory ${settings.broker.storage.rootDir}`);
  } catch (error) {
    end(error);
  }
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function stopperOf(app: INestApplication<Server>): (signal: StopSignal) => void {
  let isStopping = false;
  let mayHurry = false;
  return (signal) => {
    if (isStopping) {
      // Whoever asks a second time does not want to wait; one Ctrl-C may come twice, from the terminal and from a parent that passes it on.
      if (mayHurry) end(new Error(`stopped at once on a second ${signal}; what was acknowledged is on the disk`));
      return;
    }
    isStopping = true;
    // Counted from when the loop is free again: a signal that waited behind the first one's work came with it.
    setTimeout(() => setImmediate(() => (mayHurry = true)), REPEATED_SIGNAL_MS).unref();
    console.log(`mmmq stops on ${signal}`);
    setTimeout(() => end(new Error(`not stopped within ${STOP_DEADLINE_MS} ms`)), STOP_DEADLINE_MS).unref();
    drainConnections(app.getHttpServer());
    // Read before the end: a closed application gives out no providers. Nest swallows what its hooks throw, so the log is asked itself.
    const topicQueues = app.get(TopicQueueService);
    app.close().then(
      () =>
        topicQueues.isClosed
          ? process.exit(0)
          : end(new Error('the log could not be closed cleanly; what was acknowledged is on the disk')),
      (error: unknown) => end(error),
    );
  };
}

/** The server closes when its last connection does: idle ones go at once, those with a request under way when it is answered or too late. */
function drainConnections(server: Server): void {
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_CONNECTIONS_EVERY_MS);
  const deadline = setTimeout(() => server.closeAllConnections(), DRAIN_DEADLINE_MS);
  server.once('close', () => {
    clearInterval(idle);
    clearTimeout(deadline);
  });
}

/** One message: for an error with a code it says what to do, for any other it says where it came from. */
function end(error: unknown): never {
  console.error(`mmmq: ${messageOf(error)}`);
  process.exit(1);
}

function messageOf(error: unknown): string {
  if (error instanceof MmmqError) return error.message;
  if (!(error instanceof Error)) return String(error);
  if ('code' in error && error.code === 'EADDRINUSE')
    return `${error.message}: another process listens there; set server.port or SERVER_PORT`;
  if ('code' in error && (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND' || error.code === 'EACCES') && 'syscall' in error) {
    return `${error.message}: set server.host and server.port, or SERVER_HOST and SERVER_PORT, to what this machine can listen on`;
  }
  return error.stack ?? error.message;
}
