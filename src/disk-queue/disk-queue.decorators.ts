import { Inject } from '@nestjs/common';

/** The token under which a queue of `DiskQueueModule` is provided; of use for a provider of one's own too. */
export function getDiskQueueToken(name: string): string {
  return `mmmq.disk-queue.${name}`;
}

/** Injects the `DiskQueue` of this name, anywhere in an application that imports `DiskQueueModule`. */
export function InjectDiskQueue(name: string): ParameterDecorator & PropertyDecorator {
  return Inject(getDiskQueueToken(name));
}
