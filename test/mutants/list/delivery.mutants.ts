import type { Mutant } from '../mutant.js';

const WORKER = 'src/dispatcher/dispatcher-worker.ts';
const SENDER = 'src/dispatcher/sender.ts';
const SEND = 'const sent = await this.send(offset);';
const COMMIT = "await this.insist('the commit failed', () => this.topicQueue.commit(this.options.name, nextOffset));";
const COMMIT_ACKS = "if (acks > 0) await this.commit(next, 'delivered');";
const AFTER_NACK = "if (other?.kind === 'nack') return await this.afterNack(next, other, answer);";
const KEEP = 'const kept = await this.runtime.topicQueues.append(deadLetter);';
const seenIn = 'dispatching';
const seenInBatches = 'dispatching in batches';

/** A worker: verdict (and dead letter), then the checkpoint, then the next message. */
export const DELIVERY_MUTANTS: readonly Mutant[] = [
  {
    name: 'a message is committed before it is sent',
    seenIn,
    edits: [
      { file: WORKER, find: SEND, replace: `${COMMIT.replace('nextOffset', 'offset + 1')} ${SEND}` },
      { file: WORKER, find: `    ${COMMIT}\n    this.counters`, replace: '    this.counters' },
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
    edits: [{ file: WORKER, find: COMMIT, replace: 'await this.topicQueue.commit(this.options.name, nextOffset).catch(() => undefined);' }],
  },
  {
    name: 'only every other message is committed',
    seenIn,
    edits: [{ file: WORKER, find: COMMIT, replace: `if (nextOffset % 2 === 0) ${COMMIT}` }],
  },
  {
    name: 'the next message is sent together with the one before',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: SEND,
        replace: `if (offset + 1 < this.topicQueue.count) await this.sender.send(offset + 1).catch(() => undefined);
    ${SEND}`,
      },
    ],
  },
  {
    name: 'a message without a proper answer counts as delivered',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: "if (other?.kind === 'improper') return this.afterImproper(next, count, other);",
        replace: "if (other?.kind === 'improper') await this.commit(next + 1, 'delivered');",
      },
    ],
  },
  {
    name: 'a message that is refused counts as delivered',
    seenIn,
    edits: [
      {
        file: WORKER,
        find: 'const outcome = await this.giveUp(offset, { attempts, cause, reason: reason || cause, answer });',
        replace: "const outcome = 'delivered';",
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
        file: SENDER,
        find: 'const parcel = await this.parcelFrom(offset);',
        replace: "const parcel = await this.parcelFrom(offset).catch(() => ({ offset, corruption: 'reading failed' }));",
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
  {
    name: 'one message more than a batch has ACKs in front is committed',
    seenIn: seenInBatches,
    edits: [{ file: WORKER, find: COMMIT_ACKS, replace: COMMIT_ACKS.replace('next,', 'other === undefined ? next : next + 1,') }],
  },
  {
    name: 'a batch is committed before it has its answer',
    seenIn: seenInBatches,
    edits: [
      {
        file: SENDER,
        find: 'const { count } = parcel;',
        replace: `const { count } = parcel;
    if (count > 1) await this.parts.topicQueue.commit(this.parts.dispatcher.name, offset + count);`,
      },
    ],
  },
  {
    name: 'what stands in a batch behind a message that is refused is passed with it',
    seenIn: seenInBatches,
    edits: [
      {
        file: WORKER,
        find: AFTER_NACK,
        replace: `if (other?.kind === 'nack') {
      const wait = await this.afterNack(next, other, answer);
      if (wait === undefined && count > acks + 1) await this.commit(offset + count, 'delivered');
      return wait;
    }`,
      },
    ],
  },
  {
    name: 'an answer to a batch that ends early counts for all of it',
    seenIn: seenInBatches,
    edits: [{ file: WORKER, find: 'const next = offset + acks;', replace: 'const next = offset + (other === undefined ? count : acks);' }],
  },
  {
    name: 'what is no verdict in the answer to a batch counts as an ACK',
    seenIn: seenInBatches,
    edits: [
      {
        file: 'src/dispatcher/batch-verdicts.ts',
        find: "if (verdict.kind === 'improper') return { acks, other: { ...verdict, reason: `status ${status}, ${verdict.reason}` } };",
        replace: '',
      },
    ],
  },
];
