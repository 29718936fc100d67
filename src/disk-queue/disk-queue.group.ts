import { ErrorCode, MmmqError } from '../core/index.js';
import type { DiskQueueOptions } from './disk-queue.options.js';
import { DiskQueue } from './disk-queue.js';

/** The queues of one import of `DiskQueueModule`. */
export class DiskQueueGroup {
  private constructor(private readonly queues: readonly DiskQueue[]) {}

  /** Opens all of them, or none. */
  static async open(definitions: readonly DiskQueueOptions[]): Promise<DiskQueueGroup> {
    const queues: DiskQueue[] = [];
    try {
      for (const options of definitions) queues.push(await DiskQueue.open(options));
      return new DiskQueueGroup(queues);
    } catch (error) {
      await closeAll(queues).catch(() => undefined);
      throw error;
    }
  }

  get(name: string): DiskQueue {
    const queue = this.queues.find((each) => each.name === name);
    if (queue !== undefined) return queue;
    const names = this.queues.map((each) => each.name).join(', ') || 'none';
    throw new MmmqError(
      ErrorCode.INVALID_SETTINGS,
      `DiskQueueModule.forRootAsync: names has ${name}, and the factory gives the queues ${names}: give that one too, or take the name out`,
    );
  }

  close(): Promise<void> {
    return closeAll(this.queues);
  }
}

/** Closes each, whatever becomes of the others. @throws the first error */
async function closeAll(queues: readonly DiskQueue[]): Promise<void> {
  const outcomes = await Promise.allSettled(queues.map((queue) => queue.close()));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}
