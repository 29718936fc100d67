import { appendFile, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';
import { brokerProcesses, type BrokerProcess } from '../support/broker-process.js';
import { parseTrace, readTrace, straceCommand, straceProblem, type SystemCall } from '../support/system-call-trace.js';
import { ack, TestConsumer } from '../support/test-consumer.js';
import { temporaryDirectories } from '../support/temporary-directory.js';

/** A broker takes its time under a tracer. */
jest.setTimeout(90_000);

const problem = straceProblem();
const describeTraced = problem === undefined ? describe : describe.skip;
const reason = problem === undefined ? '' : ` (not checked here: ${problem})`;

const brokers = brokerProcesses();
const newDirectory = temporaryDirectories();

const TOPIC = 'order.created';
/** Has nothing to be repaired at the start. */
const WHOLE_TOPIC = 'payment.done';
const FIRST_SEGMENT = '0000000000000000000';
const WRITES = /^(write|writev|pwrite64|pwritev2?|send(to|msg|mmsg))$/;
const SYNCS = /^f(data)?sync$/;

/** Starts a broker whose every call to the kernel is written down. */
async function tracedBroker(cwd: string, config = ''): Promise<{ broker: BrokerProcess; trace: () => Promise<Trace> }> {
  const traceFile = join(cwd, 'trace');
  // Node can hand file operations to the kernel by io_uring, past everything that strace sees.
  const broker = await brokers.start({ cwd, config, under: straceCommand(traceFile), env: { UV_USE_IO_URING: '0' } });
  return { broker, trace: async () => new Trace(await readTrace(traceFile), join(cwd, 'data')) };
}

/** What a broker did, and the order that must hold in it. */
class Trace {
  constructor(
    private readonly calls: readonly SystemCall[],
    private readonly rootDir: string,
  ) {
    if (calls.some(({ name }) => name === 'io_uring_enter')) throw new Error('the broker went past the trace');
  }

  /** The one call for which it holds. */
  one(what: string, condition: (call: SystemCall) => boolean): SystemCall {
    const found = this.calls.filter(condition);
    if (found.length !== 1) throw new Error(`${what} was to be found once in the trace, not ${found.length} times`);
    return found[0] as SystemCall;
  }

  all(condition: (call: SystemCall) => boolean): SystemCall[] {
    return this.calls.filter(condition);
  }

  path(...names: string[]): string {
    return join(this.rootDir, ...names);
  }

  /**
   * A sync of the file or directory that succeeded, begun after the one call had returned and returned before the other began. A write through
   * the cache is its own.
   */
  expectSync(target: string, after: SystemCall | undefined, before: SystemCall): SystemCall {
    if (after !== undefined && after.target === target && after.end < before.begin && this.isThroughCache(after)) return after;
    const sync = this.calls.find(
      (call) => SYNCS.test(call.name) && call.target === target && call.result === 0 && isAfter(call, after) && call.end < before.begin,
    );
    if (sync === undefined) {
      throw new Error(`no sync of ${target} between ${after === undefined ? 'the start' : show(after)} and ${show(before)}`);
    }
    return sync;
  }

  /** Whether the call is a write to a handle whose writes are on the disk when they return. */
  private isThroughCache({ name, target, text, begin }: SystemCall): boolean {
    const handle = Number(/^\d+/.exec(text)?.[0]);
    const opened = this.calls.findLast((call) => call.name === 'openat' && call.result === handle && call.end < begin);
    return WRITES.test(name) && opened?.target === target && opened.text.includes('O_DSYNC');
  }

  /** The writes that put the bytes from `begin` to `end` into the file, the last one in each place. */
  writesOf(target: string, begin: number, end: number): SystemCall[] {
    return this.calls.filter((call) => {
      if (!WRITES.test(call.name) || call.target !== target) return false;
      const position = positionOf(call);
      return position < end && position + call.result > begin;
    });
  }

  /** Where the answer with this offset went out. */
  ack(offset: number): SystemCall {
    const body = `{"acknowledgement":"ACK","topic":"${TOPIC}","offset":${offset}}`;
    return this.one(
      `the ACK of offset ${offset}`,
      (call) => isOnSocket(call) && call.data.includes('HTTP/1.1 200') && call.data.includes(body),
    );
  }

  /** Where the message was sent to its consumer. */
  delivery(offset: number): SystemCall {
    const isDelivery = (call: SystemCall): boolean => isOnSocket(call) && call.data.startsWith('POST /messages HTTP/1.1');
    return this.one(`the delivery of offset ${offset}`, (call) => isDelivery(call) && call.data.includes(`mmmq-offset: ${offset}\r\n`));
  }

  /** Entry written, synced, position written, synced, answered: each step returned before the next began. */
  async expectDurableBeforeAck(offset: number): Promise<void> {
    const segment = this.path(TOPIC, `${FIRST_SEGMENT}.mmm`);
    const offsetIndex = this.path(TOPIC, `${FIRST_SEGMENT}.idx`);
    const index = await readFile(offsetIndex);
    const position = Number(index.readBigInt64BE(offset * 8));
    const end = offset * 8 + 8 < index.length ? Number(index.readBigInt64BE(offset * 8 + 8)) : (await readFile(segment)).length;

    const answer = this.ack(offset);
    const entryWrite = last(this.writesOf(segment, position, end));
    const indexWrite = last(this.writesOf(offsetIndex, offset * 8, offset * 8 + 8));
    this.expectSync(segment, entryWrite, indexWrite);
    this.expectSync(offsetIndex, indexWrite, answer);
  }
}

function positionOf({ text, name }: SystemCall): number {
  const position = /, (\d+)$/.exec(text)?.[1];
  if (!name.startsWith('pwrite') || position === undefined) throw new Error(`a write without a position: ${name}(${text.slice(0, 200)}`);
  return Number(position);
}

const isOnSocket = ({ name, target }: SystemCall): boolean => WRITES.test(name) && target.startsWith('TCP');
const isAfter = (call: SystemCall, earlier: SystemCall | undefined): boolean => earlier === undefined || call.begin > earlier.end;
const show = ({ name, target, begin }: SystemCall): string => `${name}(${basename(target)}) in line ${begin + 1}`;

function last(calls: readonly SystemCall[]): SystemCall {
  const call = calls.at(-1);
  if (call === undefined) throw new Error('nothing of it was written');
  return call;
}

/** The eight bytes of a position, an offset or a checkpoint. */
function int64(value: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes.toString('latin1');
}

async function publish(broker: BrokerProcess, count: number, topic = TOPIC): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const response = await broker.publish({ topic, content: { number } });
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"ACK"')]);
  }
}

describeTraced(`The system calls of a broker${reason}`, () => {
  it('sync the entries of a publish, then write and sync its positions, and only then answer it, alone and in groups', async () => {
    const cwd = await newDirectory();
    const { broker, trace } = await tracedBroker(cwd);
    await publish(broker, 3);
    await Promise.all(Array.from({ length: 8 }, () => publish(broker, 4)));
    expect(await broker.end()).toEqual({ code: 0, signal: null });

    const done = await trace();
    for (let offset = 0; offset < 3 + 8 * 4; offset += 1) await done.expectDurableBeforeAck(offset);
  });

  it('sync the directories of a new topic before its first message is answered', async () => {
    const cwd = await newDirectory();
    const { broker, trace } = await tracedBroker(cwd);
    await publish(broker, 1);
    expect(await broker.end()).toEqual({ code: 0, signal: null });

    const done = await trace();
    const made = (path: string): SystemCall =>
      done.one(`the making of ${path}`, ({ name, target, result }) => name.startsWith('mkdir') && target === path && result === 0);
    const created = (path: string): SystemCall =>
      done.one(`the making of ${path}`, ({ target, text, result }) => target === path && text.includes('O_CREAT') && result >= 0);
    const answer = done.ack(0);
    const topicDir = done.path(TOPIC);
    done.expectSync(dirname(done.path()), made(done.path()), answer);
    done.expectSync(done.path(), made(topicDir), answer);
    done.expectSync(topicDir, made(join(topicDir, 'checkpoints')), answer);
    for (const extension of ['mmm', 'idx']) {
      done.expectSync(topicDir, created(join(topicDir, `${FIRST_SEGMENT}.${extension}`)), answer);
    }
    await done.expectDurableBeforeAck(0);
  });

  it('write and sync the checkpoint, and its name, before the next message is sent to the consumer', async () => {
    const consumer = await TestConsumer.start(ack);
    try {
      const cwd = await newDirectory();
      const dispatchers = `mmmq:\n  dispatchers: [{ name: audit, host: '${consumer.url}', patterns: ['**'] }]\n`;
      const { broker, trace } = await tracedBroker(cwd, dispatchers);
      await publish(broker, 5);
      await consumer.until((received) => received.length === 5);
      expect(await broker.end()).toEqual({ code: 0, signal: null });

      const done = await trace();
      const checkpoint = done.path(TOPIC, 'checkpoints', 'audit.checkpoint');
      const commit = (nextOffset: number): SystemCall =>
        done.one(
          `the commit of ${nextOffset}`,
          (call) => WRITES.test(call.name) && call.target === checkpoint && call.data === int64(nextOffset),
        );
      // A new dispatcher's place is durable before anything is sent to it: its bytes, its name, and the name of its directory.
      done.expectSync(checkpoint, commit(0), done.delivery(0));
      done.expectSync(dirname(checkpoint), commit(0), done.delivery(0));
      done.expectSync(done.path(TOPIC), commit(0), done.delivery(0));
      for (let offset = 0; offset < 4; offset += 1) {
        expect(commit(offset + 1).begin).toBeGreaterThan(done.delivery(offset).end);
        done.expectSync(checkpoint, commit(offset + 1), done.delivery(offset + 1));
      }
      // What is sent is durable, whoever was answered first.
      expect(done.delivery(0).begin).toBeGreaterThan(
        done.expectSync(done.path(TOPIC, `${FIRST_SEGMENT}.idx`), undefined, done.delivery(0)).end,
      );
    } finally {
      await consumer.stop();
    }
  });

  it('sync, at a start behind a kill, all that the start relies on before the broker says that it is ready', async () => {
    const cwd = await newDirectory();
    const killed = await brokers.start({ cwd });
    await publish(killed, 3);
    await publish(killed, 1, WHOLE_TOPIC);
    expect(await killed.end('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
    const rootDir = join(cwd, 'data');
    // As a kill in the middle of an append leaves it: an entry without a position, and half a position.
    await appendFile(join(rootDir, TOPIC, `${FIRST_SEGMENT}.mmm`), Buffer.alloc(100, 1));
    await appendFile(join(rootDir, TOPIC, `${FIRST_SEGMENT}.idx`), Buffer.alloc(3));

    const { broker, trace } = await tracedBroker(cwd);
    expect(await broker.end()).toEqual({ code: 0, signal: null });

    const done = await trace();
    const ready = done.one('the ready line', (call) => WRITES.test(call.name) && call.data.startsWith('mmmq is ready on'));
    const cut = (path: string): SystemCall => done.one(`the cut of ${path}`, (call) => call.name === 'ftruncate' && call.target === path);
    const [segment, offsetIndex] = ['mmm', 'idx'].map((extension) => done.path(TOPIC, `${FIRST_SEGMENT}.${extension}`)) as [string, string];
    // The index first: at no moment may it name a position that the segment does not have.
    done.expectSync(offsetIndex, cut(offsetIndex), cut(segment));
    done.expectSync(segment, cut(segment), ready);
    // Where nothing was to be cut, what the killed broker wrote may still be on its way to the disk all the same.
    for (const extension of ['mmm', 'idx']) done.expectSync(done.path(WHOLE_TOPIC, `${FIRST_SEGMENT}.${extension}`), undefined, ready);
    for (const dir of [dirname(rootDir), rootDir]) done.expectSync(dir, undefined, ready);
    for (const topic of [TOPIC, WHOLE_TOPIC]) {
      for (const dir of [done.path(topic), done.path(topic, 'checkpoints')]) done.expectSync(dir, undefined, ready);
    }
    // Of a message nothing is written. Its position is written again, as it was, for the sync to bring it to the disk.
    expect(done.all(({ name, target }) => WRITES.test(name) && target.endsWith('.mmm'))).toEqual([]);
    const index = done.path(WHOLE_TOPIC, `${FIRST_SEGMENT}.idx`);
    const again = done.one('the writing of a position', ({ name, target }) => WRITES.test(name) && target === index);
    expect([again.data, positionOf(again)]).toEqual([int64(0), 0]);
    done.expectSync(index, again, ready);
  });

  it('sync, at a start behind a kill, nothing of a topic that stands as it did when the broker before had started', async () => {
    const cwd = await newDirectory();
    const first = await brokers.start({ cwd });
    for (const topic of [TOPIC, WHOLE_TOPIC]) await publish(first, 2, topic);
    expect(await first.end()).toEqual({ code: 0, signal: null });
    const killed = await brokers.start({ cwd });
    await publish(killed, 1);
    expect(await killed.end('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });

    const { broker, trace } = await tracedBroker(cwd);
    expect(await broker.end()).toEqual({ code: 0, signal: null });
    const done = await trace();
    const ready = done.one('the ready line', (call) => WRITES.test(call.name) && call.data.startsWith('mmmq is ready on'));
    for (const extension of ['mmm', 'idx']) done.expectSync(done.path(TOPIC, `${FIRST_SEGMENT}.${extension}`), undefined, ready);
    const untouched = done.path(WHOLE_TOPIC);
    expect(done.all(({ name, target }) => (SYNCS.test(name) || WRITES.test(name)) && target.startsWith(untouched))).toEqual([]);
  });
});

describe('A trace of system calls', () => {
  it('is read call by call, also where threads interrupt each other and where a kill ended it', () => {
    const text = [
      '11    openat(AT_FDCWD</w>, "/w/a\\"b.mmm", O_RDWR|O_CREAT|O_EXCL, 0644) = 7</w/a"b.mmm>',
      '12    pwrite64(7</w/a.mmm>, "\\0\\0\\0\\31x\\n", 6, 40 <unfinished ...>',
      '11    writev(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, [{iov_base="HTTP/1.1 200 OK\\r\\n", iov_len=17}, {iov_base="{\\"a\\":1}", iov_len=7}], 2) = 24',
      '12    <... pwrite64 resumed>)             = 6',
      '12    fsync(8</w>) = -1 EIO (Input/output error)',
      '11    --- SIGCHLD {si_signo=SIGCHLD} ---',
      '12    fdatasync(7</w/a.mmm> <unfinished ...>',
      '12    +++ killed by SIGKILL +++',
      '',
    ].join('\n');
    expect(parseTrace(text).map(({ name, target, data, result, begin, end }) => ({ name, target, data, result, begin, end }))).toEqual([
      { name: 'openat', target: '/w/a"b.mmm', data: '/w/a"b.mmm', result: 7, begin: 0, end: 0 },
      { name: 'pwrite64', target: '/w/a.mmm', data: '\0\0\0\x19x\n', result: 6, begin: 1, end: 3 },
      {
        name: 'writev',
        target: 'TCP:[127.0.0.1:1->127.0.0.1:2]',
        data: 'HTTP/1.1 200 OK\r\n{"a":1}',
        result: 24,
        begin: 2,
        end: 2,
      },
      { name: 'fsync', target: '/w', data: '', result: -1, begin: 4, end: 4 },
      { name: 'fdatasync', target: '/w/a.mmm', data: '', result: Number.NaN, begin: 6, end: Number.POSITIVE_INFINITY },
    ]);
    expect(() => parseTrace('11    <... fsync resumed>) = 0\n')).toThrow('ends what never began');
    expect(() => parseTrace('11    something else\n')).toThrow('no system call');
  });
});
