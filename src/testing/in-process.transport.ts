import { type ProducerTransport, type TransportAnswer, TransportError, type TransportRequest } from '../producer/index.js';
import type { PublishEntrance } from './publish.entrance.js';

/** Hands what a producer sends to the broker in the same process. */
export class InProcessTransport implements ProducerTransport {
  /** @param whilePublishing hears of each publish until it has its answer */
  constructor(
    private readonly entrance: PublishEntrance,
    private readonly whilePublishing: <T>(publish: Promise<T>) => Promise<T>,
  ) {}

  send({ path, headers, body, signal }: TransportRequest): Promise<TransportAnswer> {
    if (signal.aborted) return Promise.reject(new TransportError('given up', false));
    return this.whilePublishing(this.entrance.publish({ isBatch: path === '/messages/batch', headers, body }));
  }

  async close(): Promise<void> {}
}
