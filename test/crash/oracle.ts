import { hash } from 'node:crypto';
import { crc32c } from '@node-rs/crc32';
import { deadLetterTopic, isDeadLetterTopic, type LogEntry } from '../../src/core/index.js';
import type { Message } from '../../src/message/index.js';

/*
 * What a broker has promised, and whether a disk keeps it. It is told of every submission and its answer, of everything that was ever shown,
 * of every verdict of a consumer and of every commit that returned, and says of what it is then given to look at:
 *
 *    1. every acknowledged message is there, byte for byte, at its offset;
 *    2. nothing is there that was not submitted, and nothing more often than it was submitted: with an id, once;
 *    3. the log is in the order of the submissions, and only those are missing in it that were refused or cut off by the end of their process;
 *    4. what was shown at an offset once stands there for ever, and no count ever falls;
 *    5. the files have the structure that the format gives them, to the last byte;
 *    6. a checkpoint stands between the last one whose commit returned and the first message without a verdict;
 *    7. at rest every message has reached every dispatcher or its dead letters; on the way, each only after the one before it had its verdict
 *       and was committed, or together with it: a batch begins with the first message that is not committed.
 *
 * The other three (recovery twice gives the same files, no false acknowledgement after a fault and a refused start changes nothing, a crash
 * always starts) need the disk itself and are the sweep's.
 */

export interface Submission {
  readonly number: number;
  readonly topic: string;
  /** What will be stored, up to the time stamp. */
  readonly key: string;
  readonly id: string | undefined;
  /** Which process took it. */
  readonly process: number;
}

/** What the sender was told: that it is not stored for now (`refused`), that nothing of it is there (`gone`), or its offset. */
type Answer = 'refused' | 'gone' | number;

interface TopicHistory {
  readonly submissions: Submission[];
  /** By the number of the submission; none while it has none. */
  readonly answers: Map<number, Answer>;
  readonly shown: Map<number, Buffer>;
  visible: number;
}

interface Delivering {
  readonly verdicts: Set<number>;
  committed: number;
}

/** One way in which a promise was broken. */
export class Violation extends Error {}

export class Oracle {
  private readonly topics = new Map<string, TopicHistory>();
  /** By dispatcher and topic. */
  private readonly deliveries = new Map<string, Delivering>();
  private readonly byId = new Map<string, Submission>();
  /** The offset that this process sent last, the first one of a batch, by dispatcher and topic. Behind its first one it knows what is committed. */
  private readonly sent = new Map<string, number>();
  private process = 0;
  private submissions = 0;

  constructor(private readonly rootDir: string) {}

  clone(): Oracle {
    const copy = new Oracle(this.rootDir);
    copy.process = this.process;
    copy.submissions = this.submissions;
    for (const [topic, { submissions, answers, shown, visible }] of this.topics) {
      copy.topics.set(topic, { submissions: [...submissions], answers: new Map(answers), shown: new Map(shown), visible });
    }
    for (const [id, submission] of this.byId) copy.byId.set(id, submission);
    for (const [key, { verdicts, committed }] of this.deliveries) copy.deliveries.set(key, { verdicts: new Set(verdicts), committed });
    for (const [key, offset] of this.sent) copy.sent.set(key, offset);
    return copy;
  }

  /** The same for two oracles that would judge every disk alike. */
  fingerprint(): string {
    const topics = [...this.topics].map(([topic, { submissions, answers, shown, visible }]) => [
      topic,
      submissions.map(({ number, key, process }) => [key, process, answers.get(number)]),
      [...shown].map(([offset, payload]) => [offset, payload.toString('latin1')]).sort(),
      visible,
    ]);
    const deliveries = [...this.deliveries].map(([key, { verdicts, committed }]) => [key, [...verdicts].sort(), committed]);
    return hash('sha1', JSON.stringify([this.process, topics.sort(), deliveries.sort()]), 'base64');
  }

  /** A new process: what the one before did not answer is answered no more. */
  started(): void {
    this.process += 1;
    this.sent.clear();
  }

  submitted(message: Message): Submission {
    const { topic, id } = message;
    const key = keyOf(message.storedBytes(0));
    const again = id === undefined ? undefined : this.byId.get(`${topic} ${id}`);
    if (again !== undefined) {
      // It is on its way again.
      if (this.topic(topic).answers.get(again.number) === 'gone') this.topic(topic).answers.delete(again.number);
      return again;
    }
    this.submissions += 1;
    const submission: Submission = { number: this.submissions, topic, key, id, process: this.process };
    this.topic(topic).submissions.push(submission);
    if (id !== undefined) this.byId.set(`${topic} ${id}`, submission);
    return submission;
  }

  acknowledged(submission: Submission, offset: number): void {
    const topic = this.topic(submission.topic);
    const before = topic.answers.get(submission.number);
    if (typeof before === 'number' && before !== offset) {
      throw new Violation(`${submission.key} was acknowledged at offset ${before} and again at ${offset}`);
    }
    topic.answers.set(submission.number, offset);
    topic.visible = Math.max(topic.visible, offset + 1);
  }

  /** @param isGone nothing of the message is stored, and nothing of it may ever be seen, unless it is submitted again */
  refused(submission: Submission, isGone: boolean): void {
    const { answers } = this.topic(submission.topic);
    if (typeof answers.get(submission.number) !== 'number') answers.set(submission.number, isGone ? 'gone' : 'refused');
  }

  sawCount(topic: string, count: number): void {
    const history = this.topic(topic);
    if (count < history.visible) throw new Violation(`${topic} had ${history.visible} messages and has ${count}`);
    history.visible = count;
  }

  shown(topic: string, offset: number, payload: Buffer): void {
    const history = this.topic(topic);
    const before = history.shown.get(offset);
    if (before !== undefined && !before.equals(payload)) {
      throw new Violation(`${topic}, offset ${offset} was ${before.toString()} and is ${payload.toString()}`);
    }
    history.shown.set(offset, payload);
    history.visible = Math.max(history.visible, offset + 1);
  }

  /** A message, or a batch that begins at the offset, goes out to a consumer. */
  delivering(dispatcher: string, topic: string, offset: number, payloads: readonly Buffer[]): void {
    for (const [index, payload] of payloads.entries()) this.shown(topic, offset + index, payload);
    const { committed } = this.delivery(dispatcher, topic);
    const next = this.firstWithoutVerdict(dispatcher, topic);
    if (offset > next) throw new Violation(`${dispatcher} was sent offset ${offset} of ${topic}, but ${next} has no verdict`);
    if (offset < committed) throw new Violation(`${dispatcher} was sent offset ${offset} of ${topic}, but ${committed} is committed`);
    const key = `${dispatcher} ${topic}`;
    if (offset > committed && offset > (this.sent.get(key) ?? offset)) {
      throw new Violation(`${dispatcher} was sent offset ${offset} of ${topic} before it had committed the one before it`);
    }
    this.sent.set(key, offset);
  }

  verdict(dispatcher: string, topic: string, offset: number): void {
    this.delivery(dispatcher, topic).verdicts.add(offset);
  }

  committed(dispatcher: string, topic: string, nextOffset: number): void {
    this.delivery(dispatcher, topic).committed = nextOffset;
  }

  /** Looks at all topics and everything in them. */
  checkLogs(logs: ReadonlyMap<string, readonly LogEntry[]>): void {
    for (const [topic, entries] of logs) this.checkLog(topic, entries);
    for (const [topic, { visible }] of this.topics) {
      if (visible > 0 && !logs.has(topic)) throw new Violation(`topic ${topic} is gone, it had ${visible} messages`);
    }
  }

  private checkLog(topic: string, entries: readonly LogEntry[]): void {
    const history = this.topic(topic);
    this.sawCount(topic, entries.length);
    const unmatched = new Map<string, Submission[]>();
    for (const submission of history.submissions) {
      if (history.answers.get(submission.number) === 'gone') continue;
      const same = unmatched.get(submission.key);
      if (same === undefined) unmatched.set(submission.key, [submission]);
      else same.push(submission);
    }
    let last: Submission | undefined;
    const found = new Set<Submission>();
    for (const { offset, payload, corruption } of entries) {
      if (payload === undefined) throw new Violation(`${topic}, offset ${offset} is corrupt: ${corruption}`);
      const key = keyOf(payload);
      // A dead letter can be written again, in the same words, by the process after the one that died: the later one is meant then.
      const same = unmatched.get(key) ?? [];
      const later = same.findIndex(({ number }) => last === undefined || number > last.number);
      const [submission] = same.splice(Math.max(0, later), 1);
      if (submission === undefined)
        throw new Violation(`${topic}, offset ${offset} was not submitted, was refused for good, or stands there twice: ${key}`);
      found.add(submission);
      this.shown(topic, offset, payload);
      if (submission.id !== undefined) continue;
      if (last !== undefined && submission.number < last.number) {
        throw new Violation(`${topic}, offset ${offset} was submitted before the one in front of it: ${key}`);
      }
      last = submission;
    }
    for (const submission of history.submissions) {
      const { key } = submission;
      const answer = history.answers.get(submission.number);
      if (typeof answer === 'number') {
        const payload = entries[answer]?.payload;
        if (payload === undefined || keyOf(payload) !== key)
          throw new Violation(`${topic}, offset ${answer} was acknowledged and is lost: ${key}`);
      } else if (last !== undefined && !found.has(submission) && submission.id === undefined) {
        const isCutOff = answer !== undefined || submission.process < last.process;
        if (submission.number < last.number && !isCutOff)
          throw new Violation(`${topic} has a gap: ${key} is missing, ${last.key} is there`);
      }
    }
  }

  /**
   * Looks at the files of a broker that has recovered and is not in the middle of an append.
   * @param isFull there was no room for the second file of a segment that has no message yet
   */
  checkFiles(files: ReadonlyMap<string, Buffer>, isFull = false): void {
    const nextOffsets = new Map<string, number>();
    const segmentFile = /^(.*)\/([^/]+)\/(\d{19})\.mmm$/;
    for (const [path, bytes] of files) {
      const match = segmentFile.exec(path);
      if (match === null || !path.startsWith(`${this.rootDir}/`)) continue;
      const topic = String(match[2]);
      if (Number(match[3]) !== (nextOffsets.get(topic) ?? 0))
        throw new Violation(`${path} does not begin where the segment before it ends`);
      const index = files.get(path.replace(/mmm$/, 'idx'));
      if (index === undefined && isFull && bytes.length === 0) continue;
      if (index === undefined) throw new Violation(`${path} has no offset index`);
      nextOffsets.set(topic, Number(match[3]) + checkSegment(path, bytes, index));
    }
    for (const path of files.keys()) {
      if (path.endsWith('.idx') && !files.has(path.replace(/idx$/, 'mmm')) && !isFull) throw new Violation(`${path} has no segment`);
    }
    for (const [topic, { visible }] of this.topics) {
      const count = nextOffsets.get(topic) ?? 0;
      if (count < visible) throw new Violation(`the files of ${topic} end at ${count}, it had ${visible} messages`);
    }
    this.checkCheckpoints(files);
  }

  private checkCheckpoints(files: ReadonlyMap<string, Buffer>): void {
    for (const [key, { committed }] of this.deliveries) {
      const [dispatcher = '', topic = ''] = key.split(' ');
      const bytes = files.get(`${this.rootDir}/${topic}/checkpoints/${dispatcher}.checkpoint`);
      const offset = bytes?.length === 8 ? Number(bytes.readBigInt64BE(0)) : 0;
      const limit = this.firstWithoutVerdict(dispatcher, topic);
      if (offset < committed || offset > limit) {
        throw new Violation(
          `the checkpoint of ${dispatcher} in ${topic} is ${offset}: ${committed} is committed, ${limit} has no verdict yet`,
        );
      }
    }
  }

  /** All is delivered and nothing is under way. */
  checkAtRest(dispatchers: readonly string[]): void {
    for (const [topic, { visible }] of this.topics) {
      if (isDeadLetterTopic(topic)) continue;
      for (const dispatcher of dispatchers) {
        const next = this.firstWithoutVerdict(dispatcher, topic);
        const { committed } = this.delivery(dispatcher, topic);
        if (next < visible || committed < visible) {
          throw new Violation(`${dispatcher} rests at ${next} of ${topic} (committed ${committed}), which has ${visible} messages`);
        }
      }
    }
  }

  /** A dead letter became durable: that is a verdict on the message in it. */
  deadLettered(dispatcher: string, message: Message): void {
    if (message.topic !== deadLetterTopic(dispatcher)) throw new Violation(`a dead letter of ${dispatcher} in ${message.topic}`);
    const { topic, offset } = JSON.parse(message.content.toString()) as { topic: string; offset: number };
    this.verdict(dispatcher, topic, offset);
  }

  private firstWithoutVerdict(dispatcher: string, topic: string): number {
    const { verdicts } = this.delivery(dispatcher, topic);
    let offset = 0;
    while (verdicts.has(offset)) offset += 1;
    return offset;
  }

  private topic(topic: string): TopicHistory {
    let history = this.topics.get(topic);
    if (history === undefined) this.topics.set(topic, (history = { submissions: [], answers: new Map(), shown: new Map(), visible: 0 }));
    return history;
  }

  private delivery(dispatcher: string, topic: string): Delivering {
    const key = `${dispatcher} ${topic}`;
    let delivering = this.deliveries.get(key);
    if (delivering === undefined) this.deliveries.set(key, (delivering = { verdicts: new Set(), committed: 0 }));
    return delivering;
  }
}

/** A stored message without the time stamp, which the broker puts in as the last member. */
function keyOf(stored: Buffer): string {
  const text = stored.toString('latin1');
  const timestamp = text.lastIndexOf(',"timestamp":');
  if (timestamp < 0 || !/^,"timestamp":\d+\}$/.test(text.slice(timestamp))) return `no stored message: ${text}`;
  return text.slice(0, timestamp);
}

/** Walks a segment from its first byte to its last. Written from the format, not from the broker's own code. @returns how many messages */
function checkSegment(path: string, bytes: Buffer, index: Buffer): number {
  if (index.length % 8 !== 0) throw new Violation(`${path}: its offset index has ${index.length} bytes`);
  let position = 0;
  for (let at = 0; at < index.length; at += 8) {
    if (Number(index.readBigInt64BE(at)) !== position) throw new Violation(`${path}: record ${at / 8} does not say ${position}`);
    if (position + 8 > bytes.length) throw new Violation(`${path} ends within the entry at ${position}`);
    const end = position + 4 + bytes.readInt32BE(position);
    if (end <= position + 8 || end > bytes.length)
      throw new Violation(`${path}: the entry at ${position} ends at ${end} of ${bytes.length}`);
    if (crc32c(bytes.subarray(position + 8, end)) !== bytes.readUInt32BE(position + 4))
      throw new Violation(`${path}: bad entry at ${position}`);
    position = end;
  }
  if (position !== bytes.length) throw new Violation(`${path}: ${bytes.length - position} bytes are in no offset index`);
  return index.length / 8;
}
