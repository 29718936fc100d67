import type { DiskQueueUser, QueueShape } from './disk-queue-user.js';

export interface DiskQueueWorkload extends QueueShape {
  readonly name: string;
  /** Files are damaged and set aside. */
  readonly damages?: boolean;
  run(user: DiskQueueUser): Promise<void>;
}

/** A message of that many bytes that is like no other; the sizes are such that records lie over the borders of sectors and files. */
function text(number: number, bytes = 90 + ((number * 67) % 140)): string {
  return `message ${number} `.padEnd(bytes, String.fromCharCode(97 + (number % 26)));
}

function texts(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => text(from + index));
}

export const DISK_QUEUE_WORKLOADS: readonly DiskQueueWorkload[] = [
  {
    name: 'every message synced, alone and together, over several files',
    syncEvery: 1,
    maxBytesPerFile: 600,
    async run(user) {
      await user.put(text(0));
      await user.put(...texts(1, 4));
      await user.take(3);
      await Promise.all([user.put(...texts(5, 6)), user.take(1)]);
      await user.closeAndOpen();
      await user.put(text(7));
    },
  },
  {
    name: 'a sync at every fourth change, files that roll, and a reader behind',
    syncEvery: 4,
    maxBytesPerFile: 700,
    async run(user) {
      await user.put(...texts(0, 1));
      await user.take(1);
      await user.put(text(2));
      for (const each of texts(3, 6)) await user.put(each);
      await user.take(4);
      await user.letTimePass();
      await user.put(text(7));
      await user.closeAndOpen();
      await user.put(...texts(8, 10));
      await user.take(6);
    },
  },
  {
    name: 'syncs by time alone, messages that fill files, and a reader that keeps up',
    syncEvery: 1000,
    maxBytesPerFile: 500,
    async run(user) {
      await user.put(text(0), text(1, 480));
      await user.take(2);
      await user.put(text(2, 900));
      await user.take(1);
      await user.letTimePass();
      await user.put(text(3));
      await user.put(text(4, 250), text(5));
      await user.letTimePass();
      await user.take(1);
      await user.put(text(6));
    },
  },
  {
    name: 'emptied twice, and used on',
    syncEvery: 3,
    maxBytesPerFile: 500,
    async run(user) {
      await user.put(...texts(0, 5));
      await user.take(1);
      await user.empty();
      await user.put(...texts(6, 7));
      await user.empty();
      await user.closeAndOpen();
      await user.put(text(8));
      await user.put(text(9));
    },
  },
  {
    name: 'messages in flight, confirmed out of order, given back, and not at all',
    syncEvery: 2,
    maxBytesPerFile: 500,
    async run(user) {
      await user.put(...texts(0, 7));
      const [first, second, third, fourth] = await user.takeInFlight(4);
      await user.confirm(second, third);
      fourth?.giveBack();
      await user.confirm(first);
      const [again] = await user.takeInFlight(2);
      await user.letTimePass();
      await user.confirm(again);
      await user.closeAndOpen();
      await user.confirm(...(await user.takeInFlight(2)));
      await user.put(text(8));
    },
  },
  {
    name: 'two files that cannot be read, the one that is written to and one before it',
    syncEvery: 3,
    maxBytesPerFile: 500,
    damages: true,
    async run(user) {
      // Three are in the first file, of 94, 161 and 228 bytes with their lengths, and two in each of the next, the last one of 216.
      await user.put(...texts(0, 5));
      await user.damage('orders.diskqueue.000000.dat', 94, texts(1, 2));
      await user.take(2);
      await user.letTimePass();
      await user.put(text(6));
      await user.closeAndOpen();
      await user.damage('orders.diskqueue.000002.dat', 149, [text(6)]);
      await user.take(2);
      await user.put(text(7));
      await user.take(1);
    },
  },
];
