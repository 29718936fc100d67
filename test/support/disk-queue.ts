import { afterEach } from '@jest/globals';
import type { LoggerService } from '@nestjs/common';
import { DiskQueue, type DiskQueueOptions } from '../../src/disk-queue/index.js';

/** A logger that remembers: `warn: …`. */
export function recordingLogger(): { readonly logger: LoggerService; readonly log: string[] } {
  const log: string[] = [];
  const note =
    (level: string) =>
    (message: unknown): void => {
      log.push(`${level}: ${String(message)}`);
    };
  return { logger: { log: note('log'), warn: note('warn'), error: note('error') }, log };
}

/** Opens queues and closes behind a test those that are still open. To be called at the top of a spec, before the directories are made. */
export function diskQueues(): (options: DiskQueueOptions) => Promise<DiskQueue> {
  const opened: DiskQueue[] = [];
  afterEach(async () => {
    await Promise.allSettled(opened.splice(0).map((queue) => queue.close()));
  });
  return async (options) => {
    const queue = await DiskQueue.open({ logger: recordingLogger().logger, ...options });
    opened.push(queue);
    return queue;
  };
}

/** Takes until there is nothing left. */
export async function takeAll(queue: DiskQueue): Promise<string[]> {
  const taken: string[] = [];
  for (let bytes = await queue.take(); bytes !== undefined; bytes = await queue.take()) taken.push(bytes.toString());
  return taken;
}

/** `order-000000`, `order-000001`, … of 60 bytes, as the golden directories have them; a record has 64 then. */
export function texts(name: string, from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => `${name}-${String(from + index).padStart(6, '0')}`.padEnd(60, '.'));
}
