import { ConsoleLogger } from '@nestjs/common';

/** What Nest tells of its own start: the modules, the routes, and its own print of errors that the process reports itself. */
const CONTEXTS_NOT_LOGGED = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
  'ExceptionHandler',
]);

/** The log of the broker process: what the broker has to say, without Nest's own start. In colour on a terminal only. */
export class BrokerLogger extends ConsoleLogger {
  constructor() {
    super({ prefix: 'mmmq', colors: process.stdout.isTTY, logLevels: ['log', 'warn', 'error', 'fatal'] });
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (!CONTEXTS_NOT_LOGGED.has(String(rest.at(-1)))) super.log(message, ...rest);
  }

  override error(message: unknown, ...rest: unknown[]): void {
    if (!CONTEXTS_NOT_LOGGED.has(String(rest.at(-1)))) super.error(message, ...rest);
  }
}
