import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { MAX_ATTEMPTS_AT_ONCE, type DispatcherRegistry } from '../dispatcher/index.js';

/** Node.js itself, the libraries, the log's own output, the lock, the listening socket: some 30. */
const HANDLES_OF_THE_PROCESS = 64;

export interface OpenFilesNeed {
  /** What the process may have open at once, or undefined where nobody says it. */
  readonly limit: number | undefined;
  readonly idleFiles: number;
  readonly filesInUse: number;
}

/** Says at the start when the process may not have as many files and connections open as it can need, rather than let a busy day find out. */
export class OpenFilesCheck implements OnApplicationBootstrap {
  private readonly logger = new Logger('Broker');

  constructor(
    private readonly need: OpenFilesNeed,
    private readonly registry: Pick<DispatcherRegistry, 'dispatchers'>,
  ) {}

  onApplicationBootstrap(): void {
    const { limit, idleFiles, filesInUse } = this.need;
    const { length } = this.registry.dispatchers;
    const needed = HANDLES_OF_THE_PROCESS + filesInUse + idleFiles + length * MAX_ATTEMPTS_AT_ONCE;
    if (limit === undefined || limit >= needed) return;
    this.logger.warn(
      `this process may have ${limit} files and connections open, and can need ${needed}: ${filesInUse} files in use, ${idleFiles} idle, ` +
        `${length * MAX_ATTEMPTS_AT_ONCE} connections to consumers (${MAX_ATTEMPTS_AT_ONCE} for each dispatcher), ` +
        `${HANDLES_OF_THE_PROCESS} of its own, and one more for each producer; raise the limit (ulimit -n)`,
    );
  }
}
