import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { deliveryHeaders, storedMessage, type TestDelivery } from '../../test/support/consumer-application.js';
import { Gate } from '../../test/support/gate.js';
import { ManualClock } from '../../test/support/manual-clock.js';
import { until } from '../../test/support/until.js';
import { TopicPattern } from '../core/index.js';
import type { HttpAnswer } from '../http-route/index.js';
import { ConsumerEndpoint } from './consumer.endpoint.js';
import { type ConsumerOptions, consumerSettings } from './consumer.options.js';
import { InMemoryDeduplication } from './in-memory.deduplication.js';
import type { Listener } from './listener.js';
import type { MessageContext } from './message-context.js';
import { Reject } from './reject.error.js';
import { RetryLater } from './retry-later.error.js';

type Call = (content: unknown, context: MessageContext) => unknown;

const ACK = '{"acknowledgement":"ACK"}';
const UNREADABLE = 'the listener has thrown something that cannot be read';
const clock = new ManualClock();
let endpoint: ConsumerEndpoint;
let logged: string[];

function broken(): never {
  throw new Error('broken');
}

function revokedProxy(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** An endpoint whose application is started. */
function open(call: Call, options: ConsumerOptions = {}, listenerOptions: Listener['options'] = {}): void {
  logged = [];
  for (const level of ['log', 'warn', 'error'] as const)
    jest.spyOn(Logger.prototype, level).mockImplementation((...words: unknown[]) => void logged.push(words.join(' ')));
  const listener: Listener = {
    name: 'Orders.on',
    patterns: [TopicPattern.of('order.**')],
    options: listenerOptions,
    call: async (content, context) => {
      await call(content, context);
    },
  };
  endpoint = new ConsumerEndpoint(consumerSettings(options, 'here'), { explore: () => [listener] } as never, clock);
  endpoint.onApplicationBootstrap();
}

function deliver(
  body: string,
  delivery: TestDelivery = {},
  signal = new AbortController().signal,
  headers: object = {},
): Promise<HttpAnswer> {
  const isBatch = delivery.count !== undefined;
  return endpoint.deliver({ isBatch, headers: { ...deliveryHeaders(delivery), ...headers }, body: Buffer.from(body), signal });
}

const batch = (...contents: unknown[]): Promise<HttpAnswer> =>
  deliver(`[${contents.map((content) => storedMessage(content)).join()}]`, { count: contents.length, offset: 40 });
const verdictsOf = ({ body }: HttpAnswer): unknown => JSON.parse(body);

afterEach(() => {
  jest.restoreAllMocks();
});

describe('a delivery of one message', () => {
  it('is acknowledged when its listener returns, which was told everything about it', async () => {
    const calls: unknown[] = [];
    open((...args) => void calls.push(args));
    const members = { id: 'order-7', key: '손님 7', headers: { tenant: 'a b', constructor: 'c' } };
    const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'vendor=1' };
    const answer = await deliver(storedMessage({ amount: 1 }, {}, { ...members, ...trace }), { offset: 41, attempt: 3 });

    expect(answer).toEqual({ status: 200, body: ACK });
    expect(calls).toEqual([
      [
        { amount: 1 },
        {
          topic: 'order.created',
          offset: 41,
          attempt: 3,
          dispatcher: 'orders',
          id: 'order-7',
          key: '손님 7',
          headers: { tenant: 'a b', constructor: 'c' },
          timestamp: 1_767_225_600_000,
          ...trace,
          signal: expect.any(AbortSignal),
        },
      ],
    ]);
  });

  it('has headers without a prototype', async () => {
    let headers: MessageContext['headers'] | undefined;
    open((_content, context) => (headers = context.headers));
    await deliver(storedMessage(1));
    expect(headers?.['constructor']).toBeUndefined();
  });

  it('is handed over as the exact bytes of its content where the listener wants them', async () => {
    let content: unknown;
    open((given) => (content = given), {}, { raw: true });
    await deliver('{"topic":"order.created", "content" : {"big":12345678901234567890.10} ,"timestamp":1}');
    expect(String(content)).toBe('{"big":12345678901234567890.10}');
  });

  it.each<[string, unknown, object]>([
    ['an error', new Error('no customer'), { acknowledgement: 'NACK', reason: 'no customer' }],
    ['an error without a message', new TypeError(), { acknowledgement: 'NACK', reason: 'TypeError' }],
    ['something else', 'just so', { acknowledgement: 'NACK', reason: 'just so' }],
    ['nothing', undefined, { acknowledgement: 'NACK', reason: 'undefined' }],
    ['Reject', new Reject('never'), { acknowledgement: 'NACK', retry: false, reason: 'never' }],
  ])('is refused when its listener throws %s', async (_, thrown, body) => {
    open(() => {
      throw thrown;
    });
    const answer = await deliver(storedMessage(1));
    expect([answer.status, verdictsOf(answer)]).toEqual([200, body]);
    expect(answer.body).not.toContain('at ');
  });

  it('has a reason of a bounded length, that splits no character', async () => {
    open(() => {
      throw new Error('😀'.repeat(5000));
    });
    expect(verdictsOf(await deliver(storedMessage(1)))).toEqual({ acknowledgement: 'NACK', reason: '😀'.repeat(1000) });
  });

  it.each<[string, () => unknown, string]>([
    ['an object without a prototype', () => Object.create(null) as unknown, 'the listener failed without saying why'],
    ['one that says why', () => Object.assign(Object.create(null) as object, { message: 'no stock' }), 'no stock'],
    ['an error with a stack that throws', () => Object.defineProperty(new Error('no stock'), 'stack', { get: broken }), UNREADABLE],
    ['an object with a message that throws', () => Object.defineProperty({}, 'message', { get: broken }), UNREADABLE],
    ['a function without a text', () => Object.assign(() => undefined, { toString: broken }), UNREADABLE],
    ['a proxy that is revoked', revokedProxy, UNREADABLE],
  ])('is refused whatever is thrown, alone and in a batch: %s', async (_, thrown, reason) => {
    open((content) => {
      if (content === 'bad') throw thrown();
    });
    const nack = { acknowledgement: 'NACK', reason };
    expect(await deliver(storedMessage('bad'))).toEqual({ status: 200, body: JSON.stringify(nack) });
    expect(verdictsOf(await batch('good', 'bad'))).toEqual([{ acknowledgement: 'ACK' }, nack]);
  });

  it.each([
    [30_000, '30'],
    [1, '1'],
    [0, '0'],
    [1001, '2'],
  ])('is put off when its listener throws RetryLater(%d): Retry-After %s', async (ms, seconds) => {
    open(() => {
      throw new RetryLater(ms, 'not now');
    });
    expect(await deliver(storedMessage(1))).toEqual({
      status: 503,
      headers: { 'retry-after': seconds },
      body: '{"acknowledgement":"NACK","reason":"not now"}',
    });
  });

  it('refuses a RetryLater without a sensible wait', () => {
    for (const ms of [-1, Number.NaN, 86_400_001]) expect(() => new RetryLater(ms)).toThrow(/the wait of RetryLater/);
  });

  it.each<[ConsumerOptions['noListener'], number, object]>([
    [undefined, 200, { acknowledgement: 'NACK', retry: false, reason: 'no listener of the consumer matches the topic mail.sent' }],
    ['reject', 200, { acknowledgement: 'NACK', retry: false, reason: expect.any(String) }],
    ['retry', 503, { acknowledgement: 'NACK', reason: expect.any(String) }],
    ['acknowledge', 200, { acknowledgement: 'ACK' }],
  ])('without a listener for its topic is answered as noListener %s says', async (noListener, status, body) => {
    open(() => undefined, { noListener });
    const answer = await deliver(storedMessage(1), { topic: 'mail.sent' });
    expect([answer.status, verdictsOf(answer)]).toEqual([status, body]);
  });

  it.each<[string, string, object, string | undefined]>([
    ['no JSON', 'x', {}, undefined],
    ['an array', '[]', {}, undefined],
    ['no content', '{"topic":"order.created"}', {}, 'content'],
    ['no UTF-8', '\xff', {}, undefined],
    ['no dispatcher', storedMessage(1), { 'mmmq-dispatcher': undefined }, 'mmmq-dispatcher'],
    ['a wrong topic', storedMessage(1), { 'mmmq-topic': 'a..b' }, 'mmmq-topic'],
    ['a wrong offset', storedMessage(1), { 'mmmq-offset': '-1' }, 'mmmq-offset'],
    ['two offsets', storedMessage(1), { 'mmmq-offset': '1, 2' }, 'mmmq-offset'],
    ['a wrong attempt', storedMessage(1), { 'mmmq-attempt': '0' }, 'mmmq-attempt'],
  ])('is no delivery with %s: 400', async (_, body, headers, field) => {
    open(() => undefined);
    const answer = await deliver(body, {}, undefined, headers);
    expect([answer.status, verdictsOf(answer)]).toEqual([
      400,
      { acknowledgement: 'NACK', ...(field && { field }), reason: expect.any(String) },
    ]);
  });

  it('says in the log which message failed and where, and nothing of what it says', async () => {
    open(() => {
      throw new Error('broken');
    });
    await deliver(storedMessage({ card: '4111' }), { offset: 7, attempt: 2 });
    expect(logged.at(-1)).toMatch(
      /^dispatcher orders, topic order\.created, offset 7, attempt 2: Orders\.on failed: broken Error: broken\n/,
    );
    expect(logged.join()).not.toContain('4111');
  });
});

describe('a delivery of a batch', () => {
  it('is handled in order, and each message has its offset', async () => {
    const calls: unknown[] = [];
    open((content, { offset }) => void calls.push([content, offset]));
    expect(await batch('a', 'b', 'c')).toEqual({ status: 200, body: `[${ACK},${ACK},${ACK}]` });
    expect(calls).toEqual([
      ['a', 40],
      ['b', 41],
      ['c', 42],
    ]);
  });

  it('stops at the first message that is not acknowledged', async () => {
    const calls: unknown[] = [];
    open((content) => {
      calls.push(content);
      if (content === 'b') throw new Reject('no');
    });
    expect(verdictsOf(await batch('a', 'b', 'c'))).toEqual([
      { acknowledgement: 'ACK' },
      { acknowledgement: 'NACK', retry: false, reason: 'no' },
    ]);
    expect(calls).toEqual(['a', 'b']);
  });

  it('ends in front of a message that is put off, which is the first of the next batch and then says so itself', async () => {
    open((content) => {
      if (content === 'b') throw new RetryLater(9000, 'not now');
    });
    expect(await batch('a', 'b', 'c')).toEqual({ status: 200, body: `[${ACK}]` });
    expect(await batch('b', 'c')).toMatchObject({ status: 503, headers: { 'retry-after': '9' } });
  });

  it('ends in front of what is no message, and is refused where that is the first', async () => {
    open(() => undefined);
    const delivery = { count: 2 };
    expect(await deliver(`[${storedMessage(1)},"x"]`, delivery)).toEqual({ status: 200, body: `[${ACK}]` });
    expect(await deliver(`["x",${storedMessage(1)}]`, delivery)).toMatchObject({ status: 400 });
  });

  it.each([
    ['an object', '{}', 1],
    ['more than it says', `[${storedMessage(1)},${storedMessage(2)}]`, 1],
    ['fewer than it says', `[${storedMessage(1)}]`, 2],
    ['none', '[]', 0],
    ['no JSON', `[${storedMessage(1)}`, 1],
  ])('is refused when it is %s', async (_, body, count) => {
    open(() => undefined);
    expect(await deliver(body, { count })).toMatchObject({ status: 400 });
  });

  it('ends early when nobody waits for its answer any more', async () => {
    const client = new AbortController();
    const calls: unknown[] = [];
    open((content) => {
      calls.push(content);
      client.abort();
    });
    await deliver(`[${storedMessage('a')},${storedMessage('b')}]`, { count: 2 }, client.signal);
    expect(calls).toEqual(['a']);
  });
});

describe('deliveries at once', () => {
  it('are handled so many at a time, in the order in which they came, and leave when their client does', async () => {
    const gates = new Map(['a', 'b', 'c', 'd'].map((name) => [name, new Gate()]));
    const calls: unknown[] = [];
    open(
      async (content) => {
        calls.push(content);
        await gates.get(String(content))?.opened;
      },
      { concurrency: 2 },
    );
    const impatient = new AbortController();
    const [first, second, third, fourth] = [
      deliver(storedMessage('a')),
      deliver(storedMessage('b')),
      deliver(storedMessage('c'), {}, impatient.signal),
      deliver(storedMessage('d')),
    ];
    await until(() => calls.length === 2);
    impatient.abort();
    expect(await third).toMatchObject({ status: 503 });
    gates.get('b')?.open();
    await second;
    await until(() => calls.length === 3);
    expect(calls).toEqual(['a', 'b', 'd']);
    for (const gate of gates.values()) gate.open();
    expect((await Promise.all([first, fourth])).map(({ status }) => status)).toEqual([200, 200]);
  });

  it('that have no turn in time are in the log, with how many listeners go on though nobody waits for them', async () => {
    const gate = new Gate();
    let calls = 0;
    open(
      async () => {
        calls += 1;
        await gate.opened;
      },
      { concurrency: 2 },
    );
    const gone = new AbortController();
    const hanging = [deliver(storedMessage('a'), {}, gone.signal), deliver(storedMessage('b'))];
    await until(() => calls === 2);
    gone.abort();
    const impatient = new AbortController();
    const waiting = deliver(storedMessage('c'), {}, impatient.signal);
    impatient.abort();
    expect(await waiting).toMatchObject({ status: 503, body: expect.stringContaining('too many deliveries are being handled') });
    expect(logged.at(-1)).toMatch(/had no turn .* 2 are being handled.*\(option concurrency\), and 1 of them go on/);
    gate.open();
    await Promise.all(hanging);
  });

  it('tell the listener when the client is gone, and what it throws then costs no resend', async () => {
    const client = new AbortController();
    let hasBegun = false;
    open((_content, { signal }) => {
      hasBegun = true;
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
    });
    const answer = deliver(storedMessage(1), {}, client.signal);
    await until(() => hasBegun);
    client.abort(new Error('gone'));
    expect(await answer).toMatchObject({ status: 503, body: expect.stringContaining('gone') });
  });
});

describe('a consumer that does not listen', () => {
  it('answers 503 before its listeners are known, rather than that there is none', async () => {
    open(() => undefined);
    endpoint = new ConsumerEndpoint(consumerSettings({}, 'here'), { explore: () => [] } as never, clock);
    expect(await deliver(storedMessage(1))).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
  });

  it('lets what is being handled come to its end when it stops, refuses what waits and what comes, and then ends its signals', async () => {
    const gate = new Gate();
    const signals: AbortSignal[] = [];
    open(
      async (_content, { signal }) => {
        signals.push(signal);
        await gate.opened;
      },
      { concurrency: 1 },
    );
    const handled = deliver(storedMessage(1));
    const waiting = deliver(storedMessage(2));
    await until(() => signals.length === 1);
    const stopped = endpoint.onModuleDestroy();
    expect(await waiting).toMatchObject({ status: 503 });
    expect(await deliver(storedMessage(3))).toMatchObject({ status: 503 });
    expect(signals[0]?.aborted).toBe(false);
    clock.advance(5_000);
    await until(() => signals[0]?.aborted === true);
    gate.open();
    await stopped;
    expect(await handled).toEqual({ status: 200, body: ACK });
    expect(clock.waiting).toBe(0);
  });

  it('ends a batch early when it stops', async () => {
    const gate = new Gate();
    const calls: unknown[] = [];
    open(async (content) => {
      calls.push(content);
      await gate.opened;
    });
    const handled = batch('a', 'b');
    await until(() => calls.length === 1);
    const stopped = endpoint.onModuleDestroy();
    gate.open();
    expect(await handled).toEqual({ status: 200, body: `[${ACK}]` });
    await stopped;
    expect(calls).toEqual(['a']);
  });
});

describe('with a de-duplication', () => {
  it('a listener is called once for a message that comes again, by its id or else by its offset', async () => {
    const calls: unknown[] = [];
    open((_content, { offset }) => void calls.push(offset), { deduplication: new InMemoryDeduplication() });
    for (const offset of [1, 2, 1]) expect(await deliver(storedMessage('x'), { offset })).toEqual({ status: 200, body: ACK });
    for (const offset of [7, 8]) await deliver(storedMessage('x', {}, { id: '1' }), { offset });
    expect(calls).toEqual([1, 2, 7]);
  });

  it('a listener that failed is called again, and its verdict is its own', async () => {
    const outcomes = [new Error('no'), new Reject('never'), undefined, new Error('not called')];
    open(
      () => {
        const outcome = outcomes.shift();
        if (outcome !== undefined) throw outcome;
      },
      { deduplication: new InMemoryDeduplication() },
    );
    const answers = [];
    for (let attempt = 1; attempt <= 4; attempt += 1) answers.push((await deliver(storedMessage(1), { attempt })).body);
    expect(answers).toEqual([
      '{"acknowledgement":"NACK","reason":"no"}',
      '{"acknowledgement":"NACK","retry":false,"reason":"never"}',
      ACK,
      ACK,
    ]);
  });

  it('that keeps the failure of the work to itself makes no ACK of it', async () => {
    const deduplication = { once: (_id: string, work: () => Promise<void>) => work().catch(() => undefined) };
    open(
      () => {
        throw new Error('no');
      },
      { deduplication },
    );
    expect((await deliver(storedMessage(1))).body).toBe('{"acknowledgement":"NACK","reason":"no"}');
  });

  it('that itself fails a message comes again and costs no resend', async () => {
    open(() => undefined, { deduplication: { once: () => Promise.reject(new Error('secret host')) } });
    const before = await deliver(storedMessage(1));
    open(() => undefined, {
      deduplication: {
        once: async (_id, work) => {
          await work();
          throw new Error('secret host');
        },
      },
    });
    const after = await deliver(storedMessage(1));
    for (const answer of [before, after]) {
      expect(answer.status).toBe(503);
      expect(answer.body).not.toContain('secret');
    }
  });
});
