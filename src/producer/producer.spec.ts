import { getEventListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../test/support/manual-clock.js';
import { producers, recordingObserver } from '../../test/support/producers.js';
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
} from '../../test/support/scripted-transport.js';
import { until } from '../../test/support/until.js';
import {
  NotStoredError,
  ProduceIndeterminateError,
  ProducerClosedError,
  ProducerFullError,
  ProduceRefusedError,
  rawJson,
  TransportError,
  type Producer,
  type ProducerOptions,
  type Receipt,
} from './index.js';

const open = producers();
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

interface Scripted {
  readonly producer: Producer;
  readonly transport: ScriptedTransport;
  readonly clock: ImpatientClock;
  readonly heard: string[];
}

/** A producer for which no wait takes time. */
async function scripted(scripts: readonly Script[], options: Partial<ProducerOptions> = {}): Promise<Scripted> {
  const transport = new ScriptedTransport(...scripts);
  const clock = new ImpatientClock();
  const { observer, heard } = recordingObserver();
  return { producer: await open({ transport, clock, observer, ...options }), transport, clock, heard };
}

/** The error that a produce has come to. */
async function errorOf(produced: Promise<Receipt>): Promise<unknown> {
  return produced.then(
    (receipt) => {
      throw new Error(`there is a receipt: ${JSON.stringify(receipt)}`);
    },
    (error: unknown) => error,
  );
}

/** Waits for all; their order is kept. */
function results(produced: readonly Promise<Receipt>[]): Promise<string[]> {
  return Promise.all(
    produced.map((each) =>
      each.then(
        (receipt) => (receipt.outcome === 'acknowledged' ? `ACK ${receipt.offset}` : receipt.outcome),
        (error: Error) => error.name,
      ),
    ),
  );
}

describe('a message that is produced', () => {
  it('is acknowledged with its topic, its offset and an id of its own', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    const receipt = await producer.produce('order.created', { orderId: 7 });
    expect(receipt).toEqual({ outcome: 'acknowledged', topic: 'order.created', offset: 0, id: expect.stringMatching(UUID_V7) });
    const [request] = transport.requests;
    expect(request?.path).toBe('/messages');
    expect(request?.headers).toEqual({ 'content-type': 'application/json' });
    expect(request?.body.toString()).toBe(`{"topic":"order.created","id":"${receipt.id}","content":{"orderId":7}}`);
  });

  it('has the id, key, headers and trace that it is given', async () => {
    const { producer, transport } = await scripted([acknowledge()], {
      headers: { 'X-Tenant': 'acme' },
      auth: { username: 'me', password: 'pä:ss' },
    });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await producer.produce('order.created', 1, { id: 'order-7', key: 'customer-3', headers: { a: 'b' }, traceparent, tracestate: 'x=y' });
    expect(transport.requests[0]?.headers).toEqual({
      'content-type': 'application/json',
      'x-tenant': 'acme',
      authorization: `Basic ${Buffer.from('me:pä:ss').toString('base64')}`,
      traceparent,
      tracestate: 'x=y',
    });
    expect(transport.requests[0]?.body.toString()).toBe(
      '{"topic":"order.created","id":"order-7","key":"customer-3","headers":{"a":"b"},"content":1}',
    );
  });

  it('keeps encoded content byte for byte', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    await producer.produce('order.created', rawJson('{ "amount": 12345678901234567890.10 }'), { id: 'a' });
    expect(transport.requests[0]?.body.toString()).toBe(
      '{"topic":"order.created","id":"a","content":{ "amount": 12345678901234567890.10 }}',
    );
  });

  it('is refused before anything is sent where no broker takes as much, or it is too deep to be made JSON', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    const large = await errorOf(producer.produce('order.created', 'x'.repeat(8 * 1024 * 1024)));
    expect(large).toMatchObject({
      name: 'ProduceRefusedError',
      status: 413,
      reason: expect.stringContaining('no broker takes more than 8388608'),
    });
    let deep = {};
    for (let depth = 0; depth < 100_000; depth += 1) deep = { deep };
    expect(await errorOf(producer.produce('order.created', deep))).toMatchObject({
      status: 400,
      field: 'content',
      reason: expect.stringContaining('call stack'),
    });
    expect(transport.requests).toEqual([]);
  });

  it.each([
    ['a topic with a space', 'order created', 1, {}, 'topic'],
    ["the broker's own topic", 'dlq.mails', 1, {}, 'topic'],
    ['no content', 'order.created', undefined, {}, 'content'],
    ['null', 'order.created', null, {}, 'content'],
    ['a big integer', 'order.created', 1n, {}, 'content'],
    ['an id with a space', 'order.created', 1, { id: 'a b' }, 'id'],
    ['a key that is too long', 'order.created', 1, { key: 'k'.repeat(257) }, 'key'],
    ['a header with a capital', 'order.created', 1, { headers: { A: 'b' } }, 'headers'],
    ['encoded content that is two members', 'order.created', rawJson('1,"key":"k"'), {}, 'content'],
    ['encoded content that is no JSON', 'order.created', rawJson('{a:1}'), {}, 'content'],
    ['encoded content that is no UTF-8', 'order.created', rawJson(Buffer.from([0x22, 0xff, 0x22])), {}, undefined],
    ['encoded null', 'order.created', rawJson(' null'), {}, 'content'],
  ])('is refused before anything is sent: %s', async (_what, topic, content, options, field) => {
    const { producer, transport } = await scripted([acknowledge()]);
    const error = await errorOf(producer.produce(topic, content, options));
    expect(error).toBeInstanceOf(ProduceRefusedError);
    expect(error).toMatchObject({ code: 'MMMQ_REFUSED', status: 400, field });
    expect(transport.requests).toEqual([]);
  });

  it('is sent again under the same id, with growing waits, until it is acknowledged', async () => {
    const { producer, transport, clock, heard } = await scripted([unreachable, cut, status(503), acknowledge()], {
      backoff: { initialMs: 100, maxMs: 150 },
    });
    const receipt = await producer.produce('order.created', 1);
    expect(receipt).toMatchObject({ outcome: 'acknowledged', offset: 0 });
    expect(new Set(transport.requests.map(({ body }) => body.toString())).size).toBe(1);
    expect(clock.asked).toHaveLength(3);
    expect(clock.asked[0]).toBeGreaterThanOrEqual(100);
    expect(clock.asked[0]).toBeLessThanOrEqual(110);
    expect(clock.asked[2]).toBeGreaterThanOrEqual(150);
    expect(heard.map((line) => line.split(' ')[0])).toEqual(['repeated', 'repeated', 'repeated', 'acknowledged']);
  });

  it.each([400, 401, 403, 404, 409, 413, 415, 422, 301])('is not sent again when it is refused with %i', async (code) => {
    const { producer, transport, heard } = await scripted([status(code, { acknowledgement: 'NACK', field: 'id', reason: 'because' })]);
    const error = await errorOf(producer.produce('order.created', 1, { id: 'a' }));
    expect(error).toBeInstanceOf(ProduceRefusedError);
    expect(error).toMatchObject({ status: code, field: 'id', reason: 'because', topic: 'order.created', id: 'a' });
    expect(transport.requests).toHaveLength(1);
    expect(heard).toEqual(['refused order.created a produce']);
  });

  it.each([
    ['a time-out', silence],
    ['a connection that was lost', cut],
    ['a 503 of the broker, whose sync may have failed', status(503)],
    ["a proxy's 502", status(502, '<html>')],
    ["a proxy's 507", status(507, '<html>')],
    ['an ACK of another topic', status(200, { acknowledgement: 'ACK', topic: 'x', offset: 0 })],
    ['an ACK without an offset', status(200, { acknowledgement: 'ACK', topic: 'order.created' })],
    ['a 200 that is no JSON', status(200, 'welcome')],
    ['a transport that throws anything', () => Promise.reject(new Error('broken'))],
  ] as const)('is indeterminate behind %s, even when the broker cannot be reached any more', async (_what, script: Script) => {
    const { producer, transport, heard } = await scripted([script, unreachable], { deadlineMs: 60, timeoutMs: 5 });
    const error = await errorOf(producer.produce('order.created', 1, { id: 'a' }));
    expect(error).toBeInstanceOf(ProduceIndeterminateError);
    expect(error).toMatchObject({ code: 'MMMQ_INDETERMINATE', id: 'a', topic: 'order.created' });
    expect(transport.requests.length).toBeGreaterThan(1);
    expect(heard.at(-1)).toBe('indeterminate order.created a produce');
  });

  it.each([
    ['the broker cannot be reached', unreachable],
    ['the broker has too much to do', status(429)],
    ['the disk of the broker is full', status(507)],
  ])('is certainly not stored when %s until the deadline', async (_what, script) => {
    const { producer } = await scripted([script], { deadlineMs: 40 });
    const error = await errorOf(producer.produce('order.created', 1));
    expect(error).toBeInstanceOf(NotStoredError);
    expect((error as NotStoredError).attempts).toBeGreaterThan(1);
  });

  it('is certainly not stored, or indeterminate, as the attempt says that was under way at the deadline', async () => {
    const connecting: Script = (_messages, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new TransportError('given up', false)));
      });
    for (const [script, type] of [
      [connecting, NotStoredError],
      [silence, ProduceIndeterminateError],
    ] as const) {
      const { producer } = await scripted([script], { deadlineMs: 5, timeoutMs: 60_000 });
      const errors = await Promise.all([1, 2].map((content) => errorOf(producer.produce('order.created', content))));
      for (const error of errors) expect(error).toBeInstanceOf(type);
      expect(errors[0]).toMatchObject({ attempts: 1, reason: 'the deadline has passed while an attempt was under way: given up' });
    }
  });

  it('is indeterminate when a login is refused behind an attempt that may have stored it, and refused when the message is', async () => {
    const login = await scripted([cut, status(401)]);
    expect(await errorOf(login.producer.produce('order.created', 1))).toBeInstanceOf(ProduceIndeterminateError);
    const message = await scripted([cut, status(422)]);
    expect(await errorOf(message.producer.produce('order.created', 1))).toBeInstanceOf(ProduceRefusedError);
  });

  it.each([
    ['2', 2000],
    [new Date(Date.UTC(2026, 0, 1) + 3000).toUTCString(), 3000],
    ['nonsense', 1],
    ['900', 5000],
  ])('waits as long as Retry-After wants, up to the deadline: %s', async (retryAfter, expected) => {
    const { producer, clock } = await scripted([status(429, {}, { 'retry-after': retryAfter }), acknowledge()], { deadlineMs: 5000 });
    await producer.produce('order.created', 1);
    expect(clock.asked).toEqual([expected]);
  });
});

describe('a signal', () => {
  it('that was aborted before keeps the message from being sent', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    const reason = new Error('the user left');
    expect(await errorOf(producer.produce('order.created', 1, { signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(transport.requests).toEqual([]);
  });

  it('that is aborted while the content is made JSON keeps it from being sent as well', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    const leaving = new AbortController();
    const reason = new Error('the user left');
    const content = { toJSON: () => leaving.abort(reason) ?? 1 };
    expect(await errorOf(producer.produce('order.created', content, { signal: leaving.signal }))).toBe(reason);
    expect(transport.requests).toEqual([]);
  });

  it('takes a message out of the line, and leaves those around it', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    const leaving = new AbortController();
    const first = producer.produce('order.created', 1);
    const second = producer.produce('order.created', 2, { signal: leaving.signal });
    const third = producer.produce('order.created', 3);
    const reason = new Error('the user left');
    leaving.abort(reason);
    expect(await errorOf(second)).toBe(reason);
    expect(await results([first, third])).toEqual(['ACK 0', 'ACK 1']);
    expect(transport.contents).toEqual([[1, 3]]);
  });

  it('leaves the outcome open while the message is under way, and frees the line', async () => {
    const { producer, transport } = await scripted([silence, acknowledge()]);
    const leaving = new AbortController();
    const first = errorOf(producer.produce('order.created', 1, { signal: leaving.signal }));
    await until(() => transport.requests.length === 1);
    const second = producer.produce('order.created', 2);
    leaving.abort(new Error('the user left'));
    expect(await first).toBeInstanceOf(ProduceIndeterminateError);
    expect(await results([second])).toEqual(['ACK 0']);
    expect(transport.contents).toEqual([[1], [2]]);
  });

  it('can be that of many messages, which have one listener together, and none when they are settled', async () => {
    const { producer } = await scripted([acknowledge(), silence]);
    const leaving = new AbortController();
    const { signal } = leaving;
    const messages = Array.from({ length: 50 }, (_, content) => ({ topic: 'order.created', content }));
    const first = producer.produceBatch(messages, { signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    expect((await first).filter(({ error }) => error === undefined)).toHaveLength(50);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    const second = producer.produceBatch(messages, { signal });
    leaving.abort(new Error('the user left'));
    expect((await second).filter(({ error }) => error === signal.reason)).toHaveLength(50);
  });

  it('ends the wait between two attempts', async () => {
    const clock = new ManualClock();
    const { producer, transport } = await scripted([unreachable, acknowledge()], { clock });
    const leaving = new AbortController();
    const produced = errorOf(producer.produce('order.created', 1, { signal: leaving.signal }));
    await until(() => clock.waiting === 1);
    leaving.abort(new Error('the user left'));
    expect(await produced).toBe(leaving.signal.reason);
    expect(transport.requests).toHaveLength(1);
    // And what comes next does not wait for the rest of it.
    expect(await results([producer.produce('order.created', 2)])).toEqual(['ACK 0']);
  });
});

describe('messages that are produced together', () => {
  it('go with one request, in the order of the calls, and each has its own receipt', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    const produced = [1, 2, 3].map((content) => producer.produce('order.created', content));
    expect(await results(produced)).toEqual(['ACK 0', 'ACK 1', 'ACK 2']);
    expect(transport.contents).toEqual([[1, 2, 3]]);
    expect(transport.requests[0]).toMatchObject({ path: '/messages/batch', headers: { 'content-type': 'application/x-ndjson' } });
  });

  it('gather behind the request that is under way', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    const first = producer.produce('order.created', 1);
    await until(() => transport.requests.length === 1);
    const later = [2, 3].map((content) => producer.produce('order.created', content));
    expect(await results([first, ...later])).toEqual(['ACK 0', 'ACK 1', 'ACK 2']);
    expect(transport.contents).toEqual([[1], [2, 3]]);
  });

  it('of other topics go with requests of their own, at the same time', async () => {
    const { producer, transport } = await scripted([silence, acknowledge()], { timeoutMs: 60_000 });
    const leaving = new AbortController();
    const hanging = errorOf(producer.produce('order.created', 1, { signal: leaving.signal }));
    await until(() => transport.requests.length === 1);
    expect(await results([producer.produce('order.paid', 2)])).toEqual(['ACK 0']);
    leaving.abort();
    expect(await hanging).toBeInstanceOf(ProduceIndeterminateError);
  });

  it('are as many as a batch may have, in messages and in bytes', async () => {
    const counted = await scripted([acknowledge()], { batch: { maxMessages: 2 } });
    await Promise.all([1, 2, 3, 4, 5].map((content) => counted.producer.produce('order.created', content)));
    expect(counted.transport.contents).toEqual([[1, 2], [3, 4], [5]]);
    const weighed = await scripted([acknowledge()], { batch: { maxBytes: 200 } });
    const large = 'x'.repeat(300);
    await Promise.all([1, large, 2, 3].map((content, index) => weighed.producer.produce('order.created', content, { id: `${index}` })));
    expect(weighed.transport.contents).toEqual([[1], [large], [2, 3]]);
  });

  it('wait for each other as long as lingerMs says, and no longer than until the batch is full', async () => {
    const clock = new ManualClock();
    const { producer, transport } = await scripted([acknowledge()], { clock, lingerMs: 20, batch: { maxMessages: 3 } });
    const first = producer.produce('order.created', 1);
    await until(() => clock.waiting === 1);
    const second = producer.produce('order.created', 2);
    await setImmediate();
    expect(transport.requests).toEqual([]);
    clock.advance(20);
    expect(await results([first, second])).toEqual(['ACK 0', 'ACK 1']);
    const third = producer.produce('order.created', 3);
    await until(() => clock.waiting === 1);
    expect(await results([third, producer.produce('order.created', 4), producer.produce('order.created', 5)])).toHaveLength(3);
    expect(transport.contents).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
  });

  it('go with an array where the content of one has a line break, and one by one where their traces differ', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    await Promise.all([producer.produce('order.created', rawJson('{\n"a":1}')), producer.produce('order.created', 2)]);
    expect(transport.requests[0]?.headers['content-type']).toBe('application/json');
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await Promise.all([3, 4, 5].map((content) => producer.produce('order.created', content, content === 4 ? { traceparent } : {})));
    expect(transport.contents).toEqual([[{ a: 1 }, 2], [3], [4], [5]]);
    expect(transport.requests.map(({ headers }) => headers['traceparent'])).toEqual([undefined, undefined, traceparent, undefined]);
  });

  it('have verdicts of their own, and what is to be repeated goes before what is newer', async () => {
    const mixed: Script = (messages) =>
      answer(
        400,
        messages.map(({ topic }, place) =>
          place === 0
            ? { acknowledgement: 'ACK', topic, offset: 0 }
            : place === 2
              ? { status: 400, acknowledgement: 'NACK', reason: 'no' }
              : { status: 503, acknowledgement: 'NACK', reason: 'later' },
        ),
      );
    const { producer, transport } = await scripted([mixed, acknowledge()]);
    const produced = [1, 2, 3, 4].map((content) => producer.produce('order.created', content));
    await until(() => transport.requests.length === 1);
    produced.push(producer.produce('order.created', 5));
    expect(await results(produced)).toEqual(['ACK 0', 'ACK 0', 'ProduceRefusedError', 'ACK 1', 'ACK 2']);
    expect(transport.contents).toEqual([
      [1, 2, 3, 4],
      [2, 4, 5],
    ]);
  });

  it('are sent in smaller batches where the broker takes less, down to one message, which is then refused alone', async () => {
    const tooLarge: Script = (messages, request) =>
      messages.some(({ content }) => content === 3)
        ? answer(413, { acknowledgement: 'NACK', reason: 'too large' })
        : taken(messages, request);
    const taken = acknowledge();
    const { producer, transport, clock } = await scripted([tooLarge]);
    const produced = [1, 2, 3, 4].map((content) => producer.produce('order.created', content));
    expect(await results(produced)).toEqual(['ACK 0', 'ACK 1', 'ProduceRefusedError', 'ACK 2']);
    expect(transport.contents[0]).toEqual([1, 2, 3, 4]);
    expect(transport.contents[1]).toEqual([1, 2]);
    expect(clock.asked).toEqual([]);
  });

  it('are repeated when the answer to a batch is no answer to each of them', async () => {
    const short: Script = () => answer(200, [{ acknowledgement: 'ACK', topic: 'order.created', offset: 0 }]);
    const whole = status(200, { acknowledgement: 'ACK', offset: 1 });
    const { producer, transport } = await scripted([short, whole, acknowledge()]);
    expect(await results([1, 2].map((content) => producer.produce('order.created', content)))).toEqual(['ACK 0', 'ACK 1']);
    expect(transport.requests).toHaveLength(3);
  });

  it('each have their result in produceBatch, which does not reject', async () => {
    const { producer } = await scripted([acknowledge()]);
    const [first, second, third] = await producer.produceBatch([
      { topic: 'order.created', content: 1 },
      { topic: 'order created', content: 2 },
      { topic: 'order.paid', content: 3, id: 'c' },
    ]);
    expect(first?.receipt).toMatchObject({ topic: 'order.created', offset: 0 });
    expect(second?.error).toBeInstanceOf(ProduceRefusedError);
    expect(third?.receipt).toEqual({ outcome: 'acknowledged', topic: 'order.paid', offset: 0, id: 'c' });
  });
});

describe('the memory of a producer', () => {
  it('is bounded: what finds no room is refused at once, and there is room again behind a verdict', async () => {
    const { producer, transport } = await scripted([acknowledge()], { pendingMaxBytes: 2000 });
    const produced = [1, 2, 3, 4, 5].map((content) => producer.produce('order.created', content));
    const full = await Promise.allSettled(produced);
    expect(full.map(({ status: outcome }) => outcome)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected']);
    expect(await errorOf(produced[4] as Promise<Receipt>)).toBeInstanceOf(ProducerFullError);
    expect(transport.contents).toEqual([[1, 2, 3]]);
    expect(await results([producer.produce('order.created', 6)])).toEqual(['ACK 3']);
    expect(await results([producer.produce('order.created', 'x'.repeat(5000))])).toEqual(['ACK 4']);
  });
});

describe('an observer', () => {
  it('that throws, or rejects, breaks nothing', async () => {
    const observer = {
      acknowledged: () => {
        throw new Error('broken');
      },
      repeated: () => Promise.reject(new Error('broken')) as unknown as void,
    };
    const { producer } = await scripted([unreachable, acknowledge()], { observer });
    expect(await results([producer.produce('order.created', 1)])).toEqual(['ACK 0']);
  });
});

describe('a producer that is closed', () => {
  it('waits for what is under way, sends what waits, and takes nothing more', async () => {
    const { producer, transport } = await scripted([acknowledge()]);
    const first = producer.produce('order.created', 1);
    await until(() => transport.requests.length === 1);
    const second = producer.produce('order.created', 2);
    const closed = producer.close();
    expect(await errorOf(producer.produce('order.created', 3))).toBeInstanceOf(ProducerClosedError);
    await closed;
    expect(await results([first, second])).toEqual(['ACK 0', 'ACK 1']);
    expect(producer.close()).toBe(closed);
    // Whoever made a transport closes it.
    expect(transport.isClosed).toBe(false);
  });

  it('repeats nothing any more', async () => {
    const clock = new ManualClock();
    const { producer } = await scripted([cut, unreachable], { clock });
    const produced = producer.produce('order.created', 1);
    await until(() => clock.waiting === 1);
    const [error] = await Promise.all([errorOf(produced), producer.close()]);
    expect(error).toBeInstanceOf(ProduceIndeterminateError);
  });
});
