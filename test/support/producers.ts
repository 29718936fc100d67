import { afterEach } from '@jest/globals';
import { Producer, type ProducerObserver, type ProducerOptions } from '../../src/producer/index.js';
import { recordingLogger } from './disk-queue.js';

/** Opens producers and closes behind a test those that are still open. To be called at the top of a spec, before the directories are made. */
export function producers(): (options: Partial<ProducerOptions>) => Promise<Producer> {
  const opened: Producer[] = [];
  afterEach(async () => {
    await Promise.allSettled(opened.splice(0).map((producer) => producer.close()));
  });
  return async (options) => {
    const producer = await Producer.open({
      broker: 'http://127.0.0.1:1',
      backoff: { initialMs: 1, maxMs: 20 },
      logger: recordingLogger().logger,
      ...options,
    });
    opened.push(producer);
    return producer;
  };
}

/** An observer that writes down what it hears: `acknowledged order.created a`. */
export function recordingObserver(): { readonly observer: ProducerObserver; readonly heard: string[] } {
  const heard: string[] = [];
  const note =
    (name: string) =>
    ({ topic, id, source }: { readonly topic: string; readonly id: string; readonly source: string }): void => {
      heard.push(`${name} ${topic} ${id} ${source}`);
    };
  const observer = {
    acknowledged: note('acknowledged'),
    spooled: note('spooled'),
    refused: note('refused'),
    indeterminate: note('indeterminate'),
    notStored: note('notStored'),
    repeated: note('repeated'),
  };
  return { observer, heard };
}
