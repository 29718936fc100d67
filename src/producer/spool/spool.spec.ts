import { appendFile, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { diskQueues, recordingLogger } from '../../../test/support/disk-queue.js';
import { FaultyFileSystem } from '../../../test/support/faulty-file-system.js';
import { ManualClock } from '../../../test/support/manual-clock.js';
import { producers, recordingObserver } from '../../../test/support/producers.js';
import {
  acknowledge,
  answer,
  cut,
  ImpatientClock,
  ScriptedTransport,
  silence,
  status,
  unreachable,
  type Script,
} from '../../../test/support/scripted-transport.js';
import { temporaryDirectories } from '../../../test/support/temporary-directory.js';
import { until } from '../../../test/support/until.js';
import { rawJson, type Producer, type ProducerOptions } from '../index.js';

const open = producers();
const openQueue = diskQueues();
const newDirectory = temporaryDirectories();

/** A network that is away until the test says that it is back. */
function switched(then: Script = acknowledge(), before: Script = unreachable): { readonly script: Script; back(): void } {
  let isBack = false;
  return {
    script: (messages, request) => (isBack ? then : before)(messages, request),
    back: () => {
      isBack = true;
    },
  };
}

async function spooling(
  script: Script,
  options: Partial<ProducerOptions> = {},
  spool: Partial<ProducerOptions['spool']> = {},
): Promise<{ producer: Producer; transport: ScriptedTransport; dir: string; heard: string[]; log: string[] }> {
  const dir = spool.dir ?? (await newDirectory());
  const transport = new ScriptedTransport(script);
  const { observer, heard } = recordingObserver();
  const { logger, log } = recordingLogger();
  const producer = await open({ transport, clock: new ImpatientClock(), observer, logger, ...options, spool: { ...spool, dir } });
  return { producer, transport, dir, heard, log };
}

async function deadLines(dir: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(dir, 'producer.dead.ndjson'), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** The ids of the messages in the order in which a broker has stored them, each once. */
function storing(): { readonly script: Script; readonly stored: string[] } {
  const stored: string[] = [];
  const taken = acknowledge();
  const script: Script = (messages, request) => {
    for (const { id } of messages) if (!stored.includes(id)) stored.push(id);
    return taken(messages, request);
  };
  return { script, stored };
}

describe('a producer with a spool', () => {
  it.each([
    ['cannot be reached', unreachable],
    ['lost the connection', cut],
    ['does not answer in time', silence],
    ['has too much to do', status(429)],
    ['has no room', status(507)],
    ['fails', status(503)],
    ['is behind a proxy that fails', status(502, '<html>')],
  ])('answers "spooled" when the broker %s, and sends the same message when it is back', async (_what, before) => {
    const network = switched(acknowledge(), before);
    const { producer, transport, heard } = await spooling(network.script, { timeoutMs: 5 });
    expect(await producer.produce('order.created', 1, { id: 'a' })).toEqual({ outcome: 'spooled', topic: 'order.created', id: 'a' });
    network.back();
    await until(() => producer.spoolDepth === 0);
    expect(new Set(transport.requests.map(({ body }) => body.toString())).size).toBe(1);
    expect(heard[0]).toBe('spooled order.created a produce');
    expect(heard.at(-1)).toBe('acknowledged order.created a spool');
  });

  it('does not spool what is refused', async () => {
    for (const code of [400, 401, 422]) {
      const { producer } = await spooling(status(code));
      await expect(producer.produce('order.created', 1)).rejects.toMatchObject({ code: 'MMMQ_REFUSED', status: code });
      expect(producer.spoolDepth).toBe(0);
    }
  });

  it('keeps the order of a topic: what is newer goes through the spool too, until that is empty', async () => {
    const broker = storing();
    const network = switched(broker.script);
    const { producer } = await spooling(network.script);
    const receipts = ['a', 'b'].map((id) => producer.produce('order.created', 1, { id }));
    receipts.push(...(await Promise.all(receipts)).map(() => producer.produce('order.created', 1)));
    network.back();
    receipts.push(producer.produce('order.created', 1, { id: 'c' }));
    const outcomes = (await Promise.all(receipts)).map(({ outcome }) => outcome);
    expect(outcomes.slice(0, 4)).toEqual(['spooled', 'spooled', 'spooled', 'spooled']);
    await until(() => producer.spoolDepth === 0);
    expect(await producer.produce('order.created', 1, { id: 'd' })).toMatchObject({ outcome: 'acknowledged' });
    expect(broker.stored.filter((id) => id.length === 1)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('leaves other topics alone', async () => {
    const taken = acknowledge();
    const { producer } = await spooling((messages, request) =>
      messages.some(({ topic }) => topic === 'order.created') ? answer(503, {}) : taken(messages, request),
    );
    expect(await producer.produce('order.created', 1)).toMatchObject({ outcome: 'spooled' });
    expect(await producer.produce('order.paid', 1)).toMatchObject({ outcome: 'acknowledged' });
  });

  it('goes on sending other topics from the spool where the broker does not take one', async () => {
    const taken = acknowledge();
    let isAway = true;
    const { producer, transport } = await spooling((messages, request) => {
      if (isAway) return unreachable(messages, request);
      const items = messages.map(({ topic }) =>
        topic === 'order.created' ? { status: 503, acknowledgement: 'NACK', reason: 'no' } : { acknowledgement: 'ACK', topic, offset: 0 },
      );
      return messages.length === 1 && items[0]?.status === 503
        ? answer(503, items[0])
        : messages.length === 1
          ? taken(messages, request)
          : answer(503, items);
    });
    await Promise.all(['order.created', 'order.created', 'order.paid', 'order.paid'].map((topic) => producer.produce(topic, 1)));
    isAway = false;
    await until(() => producer.spoolDepth === 2 && transport.sent.at(-1)?.every(({ topic }) => topic === 'order.created') === true);
  });

  it('sends what is left when it is opened again, with the same bytes and traces, and before what is newer', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const first = await spooling(unreachable);
    await first.producer.produce('order.created', rawJson('{\n"amount": 1.0}'), { id: 'a', traceparent, tracestate: 'x=y' });
    await first.producer.produce('order.paid', 1, { id: 'b' });
    await first.producer.close();
    const broker = storing();
    const second = await spooling(broker.script, {}, { dir: first.dir });
    // Of which topics the older ones are is not known before they are read.
    const later = second.producer.produce('order.paid', 1, { id: 'c' });
    await later;
    await until(() => second.producer.spoolDepth === 0);
    expect(broker.stored).toEqual(['a', 'b', 'c']);
    const [request] = second.transport.requests;
    expect(request?.body.toString()).toBe('{"topic":"order.created","id":"a","content":{\n"amount": 1.0}}');
    expect(request?.headers).toMatchObject({ traceparent, tracestate: 'x=y' });
    expect(second.log).toContain('log: spool producer: 2 messages are left from before, and are sent now');
    expect((await second.producer.produce('order.paid', 1)).outcome).toBe('acknowledged');
  });

  it('sends again what was acknowledged and not removed when it ended', async () => {
    const disk = new FaultyFileSystem();
    const network = switched();
    const first = await spooling(network.script, {}, { fileSystem: disk });
    await first.producer.produce('order.created', 1, { id: 'a' });
    // No removal is durable from now on.
    disk.fail({ operation: 'sync', path: /./, errno: 'EIO' });
    disk.fail({ operation: 'rename', path: /./, errno: 'EIO' });
    network.back();
    await until(() => first.producer.spoolDepth === 0);
    await first.producer.close().catch(() => undefined);
    const broker = storing();
    const second = await spooling(broker.script, {}, { dir: first.dir });
    await until(() => second.producer.spoolDepth === 0);
    expect(broker.stored).toEqual(['a']);
  });

  it('puts what is refused into the dead file with its reason, and sends the others', async () => {
    const taken = acknowledge();
    const refusing: Script = (messages, request) => {
      if (messages.length === 1) return taken(messages, request);
      const items = messages.map(({ topic, id }, offset) =>
        id === 'b'
          ? { status: 422, acknowledgement: 'NACK', field: 'id', reason: 'the id was used' }
          : { acknowledgement: 'ACK', topic, offset },
      );
      return answer(422, items);
    };
    const network = switched(refusing);
    const { producer, dir, heard, log } = await spooling(network.script);
    await Promise.all(['a', 'b', 'c'].map((id) => producer.produce('order.created', rawJson('[1,\r\n2]'), { id })));
    network.back();
    await until(() => producer.spoolDepth === 0);
    expect(await deadLines(dir)).toEqual([
      {
        time: '2026-01-01T00:00:00.000Z',
        topic: 'order.created',
        id: 'b',
        status: 422,
        field: 'id',
        reason: 'the id was used',
        message: { topic: 'order.created', id: 'b', content: [1, 2] },
      },
    ]);
    expect(heard).toContain('refused order.created b spool');
    expect(log.join('\n')).toMatch(
      /error: spool producer: the message b of order\.created is refused with 422: the id was used\. It is in /,
    );
    expect(log.join('\n')).not.toContain('content');
  });

  it.each([
    ['write', 'ENOSPC'],
    ['sync', 'EIO'],
  ] as const)('keeps what is refused until the dead file is durable, and sends the others meanwhile: %s', async (operation, errno) => {
    const disk = new FaultyFileSystem();
    const taken = acknowledge();
    const network = switched((messages, request) =>
      messages.length === 1
        ? messages[0]?.id === 'b'
          ? answer(400, { acknowledgement: 'NACK', reason: 'no' })
          : taken(messages, request)
        : answer(
            400,
            messages.map(({ topic, id }) =>
              id === 'b' ? { status: 400, acknowledgement: 'NACK', reason: 'no' } : { acknowledgement: 'ACK', topic, offset: 0 },
            ),
          ),
    );
    const { producer, dir } = await spooling(network.script, {}, { fileSystem: disk });
    await Promise.all(['a', 'b', 'c'].map((id) => producer.produce('order.created', 1, { id })));
    const well = disk.fail({ operation, path: /dead/, errno });
    network.back();
    await until(() => producer.spoolDepth === 1);
    well();
    await until(() => producer.spoolDepth === 0);
    expect(new Set((await deadLines(dir)).map(({ id }) => id))).toEqual(new Set(['b']));
  });

  it.each([401, 403, 404, 302])('holds everything while the answer is %i, which is no fault of the messages', async (code) => {
    let isWell = false;
    const taken = acknowledge();
    const network = switched((messages, request) => (isWell ? taken(messages, request) : answer(code, '')));
    const { producer, dir, log, transport } = await spooling(network.script);
    await producer.produce('order.created', 1);
    network.back();
    await until(() => transport.requests.length > 5);
    expect(producer.spoolDepth).toBe(1);
    isWell = true;
    await until(() => producer.spoolDepth === 0);
    expect((await readdir(dir)).some((name) => name.includes('dead'))).toBe(false);
    expect(log.filter((line) => line.includes(String(code)))).toHaveLength(1);
    await until(() => log.at(-1) === 'log: spool producer: the broker takes messages again');
  });

  it('sets aside what no producer has written', async () => {
    const dir = await newDirectory();
    const queue = await openQueue({ dir, name: 'producer', syncEvery: 1 });
    for (const record of ['nonsense', '{"a":1}\n{}', 'null\n']) await queue.put(Buffer.from(record));
    await queue.close();
    const { producer } = await spooling(acknowledge(), {}, { dir });
    await until(() => producer.spoolDepth === 0);
    expect((await deadLines(dir)).map(({ record }) => Buffer.from(String(record), 'base64').toString())).toEqual([
      'nonsense',
      '{"a":1}\n{}',
      'null\n',
    ]);
  });

  it('begins a new line in a dead file whose last one was torn', async () => {
    const dir = await newDirectory();
    await appendFile(join(dir, 'producer.dead.ndjson'), '{"time":"20');
    const network = switched(status(400, { acknowledgement: 'NACK', reason: 'no' }));
    const { producer } = await spooling(network.script, {}, { dir });
    await producer.produce('order.created', 1, { id: 'a' });
    network.back();
    await until(() => producer.spoolDepth === 0);
    const [torn, whole] = (await readFile(join(dir, 'producer.dead.ndjson'), 'utf8')).split('\n');
    expect(torn).toBe('{"time":"20');
    expect(JSON.parse(whole ?? '')).toMatchObject({ id: 'a' });
  });

  it.each([
    ['certainly not stored', unreachable, 'MMMQ_NOT_STORED'],
    ['indeterminate', cut, 'MMMQ_INDETERMINATE'],
  ])('fails as it would without one where the spool cannot be written: %s', async (_what, script, code) => {
    const disk = new FaultyFileSystem();
    const { producer } = await spooling(script, {}, { fileSystem: disk });
    disk.fail({ operation: 'write', path: /dat$/, errno: 'ENOSPC' });
    await expect(producer.produce('order.created', 1)).rejects.toMatchObject({ code, cause: { code: 'MMMQ_DISK_FULL' } });
    expect(producer.spoolDepth).toBe(0);
  });

  it('takes no more than maxMessages', async () => {
    const { producer } = await spooling(unreachable, {}, { maxMessages: 2 });
    await producer.produce('order.created', 1);
    await producer.produce('order.created', 2);
    await expect(producer.produce('order.created', 3)).rejects.toMatchObject({
      code: 'MMMQ_NOT_STORED',
      cause: { code: 'MMMQ_PRODUCER_FULL' },
    });
    await expect(producer.produce('order.paid', 3)).rejects.toMatchObject({
      code: 'MMMQ_NOT_STORED',
      cause: { code: 'MMMQ_PRODUCER_FULL' },
    });
    expect(producer.spoolDepth).toBe(2);
  });

  it('goes into the spool where the memory is full, in order, with what is under way', async () => {
    const { producer, transport } = await spooling(silence, { pendingMaxBytes: 1300 });
    const first = producer.produce('order.created', 1, { id: 'a' });
    await until(() => transport.requests.length === 1);
    const others = ['b', 'c'].map((id) => producer.produce('order.created', 1, { id }));
    expect((await Promise.all([first, ...others])).map(({ outcome }) => outcome)).toEqual(['spooled', 'spooled', 'spooled']);
    await until(() => transport.requests.length > 1);
    expect(transport.sent.at(-1)?.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
  });

  it('spools what has waited for the whole deadline', async () => {
    const { producer } = await spooling(silence, { deadlineMs: 20, timeoutMs: 60_000 });
    expect((await producer.produce('order.created', 1)).outcome).toBe('spooled');
  });

  it('waits longer and longer while the broker is away, and as long as Retry-After wants', async () => {
    const clock = new ManualClock();
    const { producer, transport } = await spooling(status(429, {}, { 'retry-after': '7' }), {
      clock,
      backoff: { initialMs: 100, maxMs: 1000 },
    });
    await producer.produce('order.created', 1);
    await until(() => clock.waiting === 1);
    expect(clock.asked.at(-1)).toBe(7000);
    clock.advance(6999);
    const { length } = transport.requests;
    clock.advance(1);
    await until(() => transport.requests.length === length + 1);
  });

  it('has what the broker has not answered when the producer is closed, and keeps it for the next one', async () => {
    const without = new ScriptedTransport(silence);
    const lonely = await open({ transport: without, timeoutMs: 60_000 });
    const { producer, transport, dir } = await spooling(silence, { timeoutMs: 60_000 });
    const produced = [producer.produce('order.created', 1, { id: 'a' })];
    const failing = [lonely.produce('order.created', 1)];
    await until(() => transport.requests.length === 1 && without.requests.length === 1);
    produced.push(producer.produce('order.created', 2, { id: 'b' }));
    failing.push(lonely.produce('order.created', 2));
    const outcomes = Promise.allSettled([...produced, ...failing]);
    await Promise.all([producer.close(), lonely.close()]);
    expect(await outcomes).toMatchObject([
      { value: { outcome: 'spooled', id: 'a' } },
      { value: { outcome: 'spooled', id: 'b' } },
      { reason: { code: 'MMMQ_INDETERMINATE', reason: 'the producer was closed' } },
      { reason: { code: 'MMMQ_CLOSED' } },
    ]);
    const broker = storing();
    const next = await spooling(broker.script, {}, { dir });
    await until(() => next.producer.spoolDepth === 0);
    expect(broker.stored).toEqual(['a', 'b']);
  });

  it('cannot be opened twice', async () => {
    const { dir } = await spooling(acknowledge());
    await expect(open({ spool: { dir } })).rejects.toMatchObject({ code: 'MMMQ_LOCKED' });
  });
});
