import type { Mutant } from '../mutant.js';

const LINE = 'src/topic-queue/append-line.ts';
const QUEUE = 'src/topic-queue/topic-queue.ts';
const WINDOW = 'src/topic-queue/idempotency-window.ts';
const seenIn = 'idempotent resend';

/** Above the log: one line with one writer, and ids that are stored once. */
export const PUBLISH_MUTANTS: readonly Mutant[] = [
  {
    name: 'the last to come is the first to be stored',
    seenIn: 'eight producers, three topics',
    edits: [{ file: LINE, find: 'for (const waiting of this.#waiting) {', replace: 'for (const waiting of this.#waiting.toReversed()) {' }],
  },
  {
    name: 'two passes of one topic are under way at once',
    seenIn: 'eight producers, three topics',
    edits: [{ file: LINE, find: 'if (!this.#passing) this.#working = this.#work();', replace: 'this.#working = this.#work();' }],
  },
  {
    name: 'a publish is answered before its pass is stored',
    seenIn: 'one producer, one topic',
    edits: [
      {
        file: LINE,
        find: '      const { offsets, failure } = await this.log.append(payloads);',
        replace: `      pass.forEach(({ resolve }, index) => resolve(this.log.count + index));
      const { offsets, failure } = await this.log.append(payloads);`,
      },
    ],
  },
  {
    name: 'those who wait in a pass that failed in part are all answered with ACK',
    edits: [
      {
        file: LINE,
        find: 'for (const { reject } of pass.slice(offsets.length)) reject(rejection);',
        replace: 'void rejection; for (const { resolve } of pass.slice(offsets.length)) resolve(this.log.count);',
      },
    ],
  },
  {
    name: 'the answers of a pass are shifted by one',
    seenIn: 'eight producers, three topics',
    edits: [{ file: LINE, find: 'stored.resolve(offset);', replace: 'stored.resolve(offsets[index + 1] ?? offset);' }],
  },
  {
    name: 'ids are forgotten by a start',
    seenIn,
    edits: [
      {
        file: WINDOW,
        find: 'let next = await this.log.tailOffset(this.limits.maxCount, this.limits.maxBytes);',
        replace: 'let next = this.log.count;',
      },
    ],
  },
  {
    name: 'ids are not remembered when their message is stored',
    seenIn,
    edits: [{ file: WINDOW, find: 'if (id !== undefined) {', replace: 'if (id === undefined) {' }],
  },
  {
    name: 'an id whose first message is on its way is stored again',
    seenIn,
    edits: [{ file: QUEUE, find: 'if (others !== undefined) {', replace: 'if (others !== undefined && others.length < 0) {' }],
  },
  {
    name: 'an id is answered while its first message is on its way',
    seenIn,
    edits: [{ file: QUEUE, find: 'others.all.push(waiting);', replace: 'resolve(this.log.count);' }],
  },
  {
    name: 'an id is answered with the offset of its first message before that is durable',
    seenIn,
    edits: [
      {
        file: LINE,
        find: '      const { offsets, failure } = await this.log.append(payloads);',
        replace: `      pass.forEach(({ message }, index) => this.onStored(this.log.count + index, message));
      const { offsets, failure } = await this.log.append(payloads);`,
      },
      { file: QUEUE, find: 'if (others !== undefined) {', replace: 'if (others !== undefined && others.length < 0) {' },
      {
        file: WINDOW,
        find: 'return content === undefined ? undefined : { offset, content };',
        replace: 'return { offset, content: content ?? Buffer.alloc(0) };',
      },
      {
        file: QUEUE,
        find: 'if (message.content.equals(copy.content)) resolve',
        replace: 'if (copy.content.length === 0 || message.content.equals(copy.content)) resolve',
      },
    ],
  },
  {
    name: 'an id whose first message failed is remembered all the same',
    seenIn,
    edits: [
      {
        file: QUEUE,
        find: 'for (const { reject } of all) reject(failure);',
        replace: 'void failure; for (const { resolve } of all) resolve(this.log.count);',
      },
    ],
  },
  {
    name: 'an id is looked up in a log that could not be read, and stored again',
    seenIn,
    edits: [
      {
        file: QUEUE,
        find: 'await this.#window.firstCopy(offset);',
        replace: 'await this.#window.firstCopy(offset).catch(() => undefined);',
      },
    ],
  },
];
