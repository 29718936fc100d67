import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { type Message, PublishRefusedError, readPublish, readStored } from '../../src/message/index.js';

const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\r', '\t'), maxLength: 3 });

const scalar = fc.oneof(
  fc.constantFrom('1.0', '1e400', '-0', '-0.0', '1E+2', '0.10', '12345678901234567890123', 'true', 'false'),
  fc.constantFrom('"\\ud800"', '"\\u0041\\/"', '"\\"\\\\"', '"주문 😀"', '"\u2028"'),
  fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text)),
);

/** JSON as a producer may spell it: own number spelling, members twice, white space anywhere. Built as text, since no object could hold it. */
const { content } = fc.letrec<{ content: string; array: string; object: string }>((tie) => ({
  content: fc.oneof({ maxDepth: 4, withCrossShrink: true }, scalar, tie('array'), tie('object')),
  array: fc
    .tuple(fc.array(fc.oneof(fc.constant('null'), tie('content')), { maxLength: 3 }), space)
    .map(([items, s]) => `[${s}${items.join(`${s},`)}${s}]`),
  object: fc
    .tuple(fc.array(fc.tuple(fc.constantFrom('"a"', '"\\u0061"', '"__proto__"', '""', '"topic"'), tie('content')), { maxLength: 3 }), space)
    .map(([members, s]) => `{${s}${members.map(([name, value]) => `${name}${s}:${value}`).join(`,${s}`)}${s}}`),
}));

const id = fc.stringMatching(/^[A-Za-z0-9._:-]{1,96}$/);
const trace = fc.record({
  traceparent: fc.constantFrom(undefined, 'nonsense', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
  tracestate: fc.constantFrom(undefined, '', 'a=b', 'a="\\', 'rojo=00f067aa0ba902b7, congo=t61rcWkgMzE'),
});

function outcomeOf(body: Buffer): Message | PublishRefusedError {
  try {
    return readPublish(body, {});
  } catch (error) {
    if (error instanceof PublishRefusedError) return error;
    throw error;
  }
}

describe('what is stored of a publish', () => {
  it('is the producer’s object without its last brace, then the broker’s members, and the content’s bytes are the ones given', () => {
    const members = fc.record({
      topic: fc.constantFrom('"order.created"', '{"name":"order.created"}', '"order\\u002ecreated"'),
      content,
      id: fc.option(id, { nil: undefined }),
      key: fc.constantFrom(undefined, '"k"', '"\\u00e9"'),
      headers: fc.constantFrom(undefined, '{}', '{"a":"1"}'),
    });
    fc.assert(
      fc.property(members, fc.boolean(), space, trace, fc.nat(), (given, idAsHeader, s, headers, timestampMs) => {
        const spelled = Object.entries(given)
          .filter(([name, value]) => value !== undefined && !(name === 'id' && idAsHeader))
          .map(([name, value]) => `"${name}"${s}:${s}${name === 'id' ? `"${value}"` : value}`);
        const object = `{${s}${spelled.join(`${s},`)}${s}}`;
        const idempotencyKey = idAsHeader ? given.id : undefined;

        const message = readPublish(Buffer.from(`${s}${object}${s}`), { ...headers, idempotencyKey });
        const stored = message.storedBytes(timestampMs);

        const head = Buffer.from(object).subarray(0, -1);
        expect(stored.subarray(0, head.length)).toEqual(head);
        const tracestate = headers.traceparent?.startsWith('00-') && headers.tracestate !== '' ? headers.tracestate : undefined;
        const added = {
          id: idempotencyKey,
          traceparent: headers.traceparent?.startsWith('00-') ? headers.traceparent : undefined,
          tracestate,
          timestamp: timestampMs,
        };
        expect(stored.subarray(head.length).toString()).toBe(`,${JSON.stringify(added).slice(1)}`);
        expect(JSON.parse(stored.toString())).toMatchObject(JSON.parse(JSON.stringify(added)) as object);

        expect(message.content).toEqual(Buffer.from(given.content));
        expect(readStored(stored)).toMatchObject({ topic: 'order.created', content: Buffer.from(given.content) });
        expect(readStored(stored)?.id).toBe(given.id);
      }),
      { numRuns: 2000 },
    );
  });

  it('is nothing but a message or a refusal with status 400, whatever the bytes are', () => {
    const valid = fc.tuple(content, id).map(([value, text]) => Buffer.from(`{"topic":"a.b","id":"${text}","content":${value}}`));
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array().map((bytes) => Buffer.from(bytes)),
          valid,
        ),
        fc.nat(),
        fc.integer({ min: 0, max: 255 }),
        (body, at, byte) => {
          if (body.length > 0) body[at % body.length] = byte;
          const outcome = outcomeOf(body);
          if (outcome instanceof PublishRefusedError) return outcome.status === 400 && outcome.reason !== '';
          return JSON.parse(outcome.storedBytes(1).toString()) !== null;
        },
      ),
      { numRuns: 5000 },
    );
  });
});
