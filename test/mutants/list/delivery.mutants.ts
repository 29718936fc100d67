import type { Mutant } from '../mutant.js';

const WORKER = 'src/dispatcher/dispatcher-worker.ts';
const DELIVER = 'const outcome = await this.deliver(offset);';
const COMMIT = "await this.insist('the commit failed', () => this.topicQueue.commit(this.options.name, offset + 1));";
const KEEP = 'const kept = await this.runtime.topicQueues.append(deadLetter);';
const seenIn = 'dispatching';

/** A worker: verdict (and dead letter), then the checkpoint, then the next message. */
export const DELIVERY_MUTANTS: readonly Mutant[] = [
  {
    name: 'a message is committed before it is sent',
    seenIn,
    edits: [
      { file: WORKER, find: DELIVER, replace: `${COMMIT} ${DELIVER}` },
      { file: WORKER, find: `    ${COMMIT}\n    this.nextOffset`, replace: '    this.nextOffset' },
    ],
  },
  {
    name: 'the next message is sent before the commit of the one before is done',
    seenIn,
    edits: [{ file: WORKER, find: COMMIT, replace: COMMIT.replace('await', 'void') }],
  },
  {
    name: 'a commit that failed is not tried again',
    seenIn,
    edits: [{ file: WORKER, find: COMMIT, replace: 'await this.topicQueue.commit(this.options.name, offset + 1).catch(() => undefined);' }],
  },
  {
    name: 'only every other message is committed',
    seenIn,
    edits: [{ file: WORKER, find: COMMIT, replace: `if (offset % 2 === 1) ${COMMIT}` }],
  },
  {
    name: 'the next message is sent together with the one before',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: DELIVER,
        replace: `const ahead = offset + 1 < this.topicQueue.count ? this.read(offset + 1) : undefined;
    await ahead?.then((entry) => (entry.payload === undefined ? undefined : this.post(offset + 1, entry.payload, 1)));
    ${DELIVER}`,
      },
    ],
  },
  {
    name: 'a message without a proper answer counts as delivered',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: "return { kind: 'wait', run: progress.improperRun, problem, longerMs: verdict.retryAfterMs };",
        replace: "return { kind: 'end', outcome: 'delivered' };",
      },
    ],
  },
  {
    name: 'a message that is refused counts as delivered',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: "return { kind: 'giveUp', refusal: { attempts, cause, reason: verdict.reason || cause, answer } };",
        replace: "return { kind: 'end', outcome: 'delivered' };",
      },
    ],
  },
  {
    name: 'a dead letter is written after the commit',
    seenIn,
    edits: [{ file: WORKER, find: KEEP, replace: `await this.topicQueue.commit(this.options.name, offset + 1); ${KEEP}` }],
  },
  {
    name: 'a dead letter is not waited for',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: KEEP,
        replace: "void this.runtime.topicQueues.append(deadLetter).catch(() => undefined); const kept = { topic: 'dlq', offset: 0 };",
      },
    ],
  },
  {
    name: 'a dead letter that cannot be written is passed over',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: KEEP,
        replace: "const kept = await this.runtime.topicQueues.append(deadLetter).catch(() => ({ topic: 'dlq', offset: 0 }));",
      },
    ],
  },
  {
    name: 'a message that cannot be read is passed over',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: 'const entry = await this.read(offset);\n    if (this.stopping',
        replace:
          "const entry = await this.read(offset).catch((): LogEntry => ({ offset, corruption: 'reading failed' }));\n    if (this.stopping",
      },
    ],
  },
  {
    name: 'a checkpoint that cannot be read counts as the end',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: "await this.insist('the checkpoint cannot be read or made', () => this.topicQueue.committed(name));",
        replace: 'await this.topicQueue.committed(name).catch(() => this.topicQueue.count);',
      },
    ],
  },
  {
    name: 'a dispatcher begins at 0 whatever its checkpoint says',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: "await this.insist('the checkpoint cannot be read or made', () => this.topicQueue.committed(name));",
        replace: "await this.insist('the checkpoint cannot be read or made', () => this.topicQueue.committed(name).then(() => 0));",
      },
    ],
  },
  {
    name: 'an arrival wakes nobody',
    seenIn,
    edits: [
      { file: WORKER, find: 'this.topicQueue.onArrival(() => this.wake());', replace: 'this.topicQueue.onArrival(() => undefined);' },
    ],
  },
];
