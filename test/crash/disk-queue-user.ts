import type { LoggerService } from '@nestjs/common';
import { ErrorCode, MmmqError } from '../../src/core/index.js';
import { DiskQueue, type InFlightMessage } from '../../src/disk-queue/index.js';
import { OpenMode, writeFully } from '../../src/storage/file-system/index.js';
import type { DiskQueueOracle } from './disk-queue-oracle.js';
import { Violation } from './oracle.js';
import { SimulatedClock } from './simulated-broker.js';
import type { SimulatedDisk } from './simulated-disk.js';

export const QUEUE_DIR = '/data';
export const QUEUE_NAME = 'orders';

export interface QueueShape {
  readonly syncEvery: number;
  readonly maxBytesPerFile: number;
}

/** Uses a disk queue on a simulated disk, and tells the oracle what it does. An error of the disk is an answer like any other. */
export class DiskQueueUser {
  readonly clock = new SimulatedClock();
  readonly log: string[] = [];
  /** How often the queue was opened. */
  starts = 0;
  private readonly inFlight = new Set<InFlightMessage>();
  private opened: DiskQueue | undefined;

  constructor(
    private readonly disk: SimulatedDisk,
    readonly oracle: DiskQueueOracle,
    private readonly shape: QueueShape,
  ) {}

  get isOpen(): boolean {
    return this.opened !== undefined;
  }

  get queue(): DiskQueue {
    if (this.opened === undefined) throw new Violation('the queue is not open');
    return this.opened;
  }

  async open(): Promise<void> {
    const note = (message: unknown): unknown => this.log.push(String(message));
    const logger: LoggerService = { log: note, warn: note, error: note };
    const { disk, clock, shape } = this;
    this.opened = await DiskQueue.open({
      ...shape,
      dir: QUEUE_DIR,
      name: QUEUE_NAME,
      maxMessageBytes: 4096,
      syncTimeoutMs: 1000,
      fileSystem: disk,
      logger,
      clock,
    });
    this.starts += 1;
  }

  /** Puts messages without waiting for each other. Each text tells how long it is. */
  async put(...texts: readonly string[]): Promise<void> {
    await Promise.all(
      texts.map(async (text) => {
        const become = this.oracle.put(text);
        become((await this.tried(() => this.queue.put(Buffer.from(text)))) === undefined ? 'refused' : 'acknowledged');
      }),
    );
  }

  async take(count: number): Promise<void> {
    for (let taken = 0; taken < count; taken += 1) {
      const took = this.oracle.take(false);
      took((await this.tried(() => this.queue.take()))?.value?.toString());
    }
  }

  async takeInFlight(count: number): Promise<InFlightMessage[]> {
    const messages: InFlightMessage[] = [];
    for (let taken = 0; taken < count; taken += 1) {
      const message = (await this.tried(() => this.queue.takeInFlight()))?.value;
      if (message === undefined) continue;
      messages.push(message);
      this.inFlight.add(message);
    }
    return messages;
  }

  giveBackAll(): void {
    for (const message of this.inFlight) message.giveBack();
  }

  async confirm(...messages: readonly (InFlightMessage | undefined)[]): Promise<void> {
    for (const message of messages) {
      if (message === undefined) continue;
      this.oracle.confirm(message.bytes.toString());
      await this.tried(() => message.confirm());
    }
  }

  async empty(): Promise<void> {
    this.oracle.emptying();
    if ((await this.tried(() => this.queue.empty())) !== undefined) this.oracle.emptied();
  }

  /** Somebody's hands, or a rotten disk: a record of a file is no record any more, and those behind it in that file are lost. */
  async damage(file: string, position: number, lost: readonly string[]): Promise<void> {
    for (const text of lost) this.oracle.damaged(text);
    await this.tried(async () => {
      const opened = await this.disk.open(`${QUEUE_DIR}/${file}`, OpenMode.EXISTING);
      try {
        await writeFully(opened, Buffer.alloc(4, 0xff), position);
        await opened.sync();
      } finally {
        await opened.close();
      }
    });
  }

  /** The time comes at which everything is synced. */
  async letTimePass(): Promise<void> {
    this.clock.advance();
    await new Promise((resolve) => setImmediate(resolve));
    this.oracle.synced();
  }

  async close(): Promise<void> {
    const { queue } = this;
    this.opened = undefined;
    this.inFlight.clear();
    if ((await this.tried(() => queue.close())) !== undefined) this.oracle.synced();
  }

  async closeAndOpen(): Promise<void> {
    await this.close();
    await this.open();
  }

  /** Takes everything that is there. @returns what was there */
  async drain(): Promise<string[]> {
    const texts: string[] = [];
    for (let bytes = await this.queue.take(); bytes !== undefined; bytes = await this.queue.take()) {
      texts.push(bytes.toString());
      const { depth } = this.queue;
      if (depth < 0) throw new Violation(`the depth is ${depth}`);
    }
    if (this.queue.depth !== 0) throw new Violation(`everything was taken, and the depth is ${this.queue.depth}`);
    return texts;
  }

  /** @returns undefined where the disk failed */
  private async tried<T>(work: () => Promise<T>): Promise<{ readonly value: T } | undefined> {
    try {
      return { value: await work() };
    } catch (error) {
      if (!(error instanceof MmmqError)) throw error;
      if (error.code !== ErrorCode.IO && error.code !== ErrorCode.DISK_FULL) throw error;
      return undefined;
    }
  }
}
