import { describe, expect, it } from '@jest/globals';
import { type Message, PublishRefusedError, readPublish, type PublishHeaders } from './index.js';

function publish(body: string | Buffer, headers: PublishHeaders = {}): Message {
  return readPublish(Buffer.from(body), headers);
}

function refusal(body: string | Buffer, headers: PublishHeaders = {}): PublishRefusedError {
  try {
    publish(body, headers);
  } catch (error) {
    if (error instanceof PublishRefusedError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

function stored(message: Message): string {
  return message.storedBytes(1767225600000).toString();
}

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('a publish that is accepted', () => {
  it('has a topic and a content, and is stored from brace to brace with the time of its append', () => {
    const message = publish(' \r\n\t{ "content" : {"amount": 1.0},\n "topic":"order.created" } \n');
    expect(message.topic).toBe('order.created');
    expect(message.id).toBeUndefined();
    expect(message.content.toString()).toBe('{"amount": 1.0}');
    expect(stored(message)).toBe('{ "content" : {"amount": 1.0},\n "topic":"order.created" ,"timestamp":1767225600000}');
  });

  it.each([
    '1.0',
    '1e400',
    '-0',
    '-0.0',
    '1E+2',
    '123456789012345678901234567890.10',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0041\\/"',
    '"주문 😀"',
    '"null"',
    'true',
    'false',
    '0',
    '""',
    '[]',
    '{}',
    '{"a":1,"a":2}',
    '{"b":1,"a":2,"1":3}',
    '[ 1 ,\n\t2 ]',
    '{"__proto__":{"polluted":true},"constructor":null,"topic":1,"content":null}',
  ])('keeps the content %s byte for byte', (content) => {
    const message = publish(`{"topic":"t","content":${content}}`);
    expect(message.content.toString()).toBe(content);
    expect(stored(message)).toBe(`{"topic":"t","content":${content},"timestamp":1767225600000}`);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it('may spell its members and their values with escapes', () => {
    const message = publish('{"topi\\u0063":"order\\u002ecreated","content":1,"id":"\\u0061"}');
    expect(message).toMatchObject({ topic: 'order.created', id: 'a' });
    expect(stored(message)).toContain('{"topi\\u0063":"order\\u002ecreated"');
  });

  it('may give its topic in the older form, which is stored as it came', () => {
    const message = publish('{"topic": { "name" : "order.created" } ,"content":1}');
    expect(message.topic).toBe('order.created');
    expect(stored(message)).toBe('{"topic": { "name" : "order.created" } ,"content":1,"timestamp":1767225600000}');
  });

  it('may have an id, a key and headers at the limits of their rules', () => {
    const key = 'é'.repeat(128);
    const headers = { a: 'x'.repeat(4000), ['n'.repeat(64)]: '주'.repeat(10), b: '' };
    const message = publish(JSON.stringify({ topic: 't'.repeat(200), content: 1, id: 'aZ09._:-'.repeat(12), key, headers }));
    expect(message.id).toBe('aZ09._:-'.repeat(12));
    expect(Buffer.byteLength(Object.entries(headers).flat().join(''))).toBe(4096);
    expect(publish('{"topic":"t","content":1,"headers":{}}').topic).toBe('t');
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'may have the topic, id and key %s, plain names all of them',
    (name) => {
      expect(publish(JSON.stringify({ topic: name, content: 1, id: name, key: name }))).toMatchObject({ topic: name, id: name });
    },
  );

  it('may nest its content 512 levels deep', () => {
    const content = '['.repeat(512) + ']'.repeat(512);
    expect(publish(`{"topic":"t","content":${content}}`).content.toString()).toBe(content);
  });

  it('takes its id from the Idempotency-Key header, and stores it before the broker’s other members', () => {
    const message = publish('{"topic":"t","content":1}', {
      idempotencyKey: 'order-7:1',
      traceparent: TRACEPARENT,
      tracestate: 'vendor="a\\b"',
    });
    expect(message.id).toBe('order-7:1');
    expect(stored(message)).toBe(
      `{"topic":"t","content":1,"id":"order-7:1","traceparent":"${TRACEPARENT}","tracestate":"vendor=\\"a\\\\b\\"","timestamp":1767225600000}`,
    );
  });

  it('does not store an id twice that came as member and as header', () => {
    const message = publish('{"id":"a","topic":"t","content":1}', { idempotencyKey: 'a' });
    expect(message.id).toBe('a');
    expect(stored(message)).toBe('{"id":"a","topic":"t","content":1,"timestamp":1767225600000}');
  });

  it('loses a broken trace in silence', () => {
    const plain = '{"topic":"t","content":1,"timestamp":1767225600000}';
    expect(stored(publish('{"topic":"t","content":1}', { traceparent: 'nonsense', tracestate: 'a=b' }))).toBe(plain);
    expect(stored(publish('{"topic":"t","content":1}', { tracestate: 'a=b' }))).toBe(plain);
    expect(stored(publish('{"topic":"t","content":1}', { traceparent: TRACEPARENT, tracestate: 'not valid' }))).toBe(
      `{"topic":"t","content":1,"traceparent":"${TRACEPARENT}","timestamp":1767225600000}`,
    );
  });

  it('has views into the body, not copies, and each stored form is a buffer of its own', () => {
    const body = Buffer.from('{"topic":"t","content":[1]}');
    const message = readPublish(body, {});
    expect(message.content.buffer).toBe(body.buffer);
    const bytes = message.storedBytes(1);
    body.fill(0x20);
    expect(bytes.toString()).toBe('{"topic":"t","content":[1],"timestamp":1}');
  });
});

describe('a publish that is refused', () => {
  it.each([
    // The body as a whole
    ['an empty body', '', undefined, 'the body is empty'],
    ['white space alone', ' \r\n\t', undefined, 'the body is empty'],
    ['null', 'null', undefined, 'the body is a JSON object'],
    ['an array', '[{"topic":"t","content":1}]', undefined, 'the body is a JSON object'],
    ['a string', '"topic"', undefined, 'the body is a JSON object'],
    ['a number', '1', undefined, 'the body is a JSON object'],
    ['text', 'topic=t', undefined, 'the body is not JSON: expected a value, at byte 0'],
    ['a body that ends too early', '{"topic":"t","content":1', undefined, 'the body is not JSON: expected "," or "}", at byte 24'],
    ['something behind the object', '{"topic":"t","content":1}{}', undefined, 'the body is not JSON: expected nothing more, at byte 25'],
    ['a comma too many', '{"topic":"t","content":1,}', undefined, 'the body is not JSON: expected a member name'],
    ['a comment', '{"topic":"t",/**/"content":1}', undefined, 'the body is not JSON'],
    ['a content that is no JSON', '{"topic":"t","content":01}', undefined, 'the body is not JSON'],
    ['a NUL behind the object', '{"topic":"t","content":1}\0', undefined, 'expected nothing more'],
    ['a million nested arrays', '['.repeat(1_000_000), undefined, 'the body has more than 512 levels'],
    ['a byte order mark', '\ufeff{"topic":"t","content":1}', undefined, 'byte order mark'],

    // Members
    ['no member at all', '{}', 'topic', 'the member "topic" is missing'],
    ['no topic', '{"content":1}', 'topic', 'the member "topic" is missing'],
    ['no content', '{"topic":"t"}', 'content', 'the member "content" is missing'],
    ['an unknown member', '{"topic":"t","content":1,"priority":5}', 'priority', '"priority" is no member of a message'],
    ['a member but for its case', '{"Topic":"t","content":1}', 'Topic', '"Topic" is no member'],
    ['the member __proto__', '{"__proto__":{"topic":"t"},"content":1}', '__proto__', '"__proto__" is no member'],
    ['the member constructor', '{"topic":"t","content":1,"constructor":1}', 'constructor', '"constructor" is no member'],
    ['the member timestamp', '{"topic":"t","content":1,"timestamp":1}', 'timestamp', '"timestamp" is no member'],
    ['the member traceparent', `{"topic":"t","content":1,"traceparent":"${TRACEPARENT}"}`, 'traceparent', 'is no member'],
    ['a member without a name', '{"":1}', '', '"" is no member'],
    ['the topic twice', '{"topic":"t","topic":"t","content":1}', 'topic', 'the member "topic" is there twice'],
    ['the topic twice, once with escapes', '{"topic":"t","topi\\u0063":"u","content":1}', 'topic', 'is there twice'],
    ['the content twice', '{"topic":"t","content":1,"content":1}', 'content', 'is there twice'],
    ['the id twice', '{"topic":"t","content":1,"id":"a","id":"a"}', 'id', 'is there twice'],
    ['the key twice', '{"topic":"t","content":1,"key":"a","key":"b"}', 'key', 'is there twice'],
    ['the headers twice', '{"topic":"t","content":1,"headers":{},"headers":{}}', 'headers', 'is there twice'],

    // Topic
    ['a number as topic', '{"topic":1,"content":1}', 'topic', 'a topic is a string'],
    ['null as topic', '{"topic":null,"content":1}', 'topic', 'a topic is a string'],
    ['nested arrays as topic', `{"topic":${'['.repeat(1000)},"content":1}`, 'topic', 'a topic is a string'],
    ['an empty topic', '{"topic":"","content":1}', 'topic', 'a topic has at least one character'],
    ['a topic too long', `{"topic":"${'t'.repeat(201)}","content":1}`, 'topic', 'a topic has at most 200 characters'],
    ['a path as topic', '{"topic":"../../etc/passwd","content":1}', 'topic', 'a topic has no characters but'],
    ['dots as topic', '{"topic":"..","content":1}', 'topic', 'a topic has no empty word'],
    ['a NUL in the topic', '{"topic":"a\\u0000b","content":1}', 'topic', 'a topic has no characters but'],
    ['a percent in the topic', '{"topic":"a%2fb","content":1}', 'topic', 'a topic has no characters but'],
    ['a topic of dead letters', '{"topic":"dlq.order-dispatcher","content":1}', 'topic', "is the broker's own"],
    ['the same with escapes', '{"topic":"\\u0064lq.order-dispatcher","content":1}', 'topic', "is the broker's own"],
    [
      'a topic of dead letters but for its case',
      '{"topic":"DLQ.order-dispatcher","content":1}',
      'topic',
      "in any case of its letters, is the broker's own",
    ],
    ['a topic object without name', '{"topic":{},"content":1}', 'topic', 'the member "name" is missing'],
    ['a topic object with more in it', '{"topic":{"name":"t","x":1},"content":1}', 'topic', '"x" is no member of a topic'],
    ['a topic object with two names', '{"topic":{"name":"t","n\\u0061me":"t"},"content":1}', 'topic', '"name" is there twice'],
    ['a topic object whose name is no string', '{"topic":{"name":["t"]},"content":1}', 'topic', 'the name of a topic is a string'],
    ['a topic object whose name is reserved', '{"topic":{"name":"dlq.x"},"content":1}', 'topic', "is the broker's own"],
    ['a topic object whose name is no topic', '{"topic":{"name":"a/b"},"content":1}', 'topic', 'a topic has no characters but'],

    // Content
    ['null as content', '{"topic":"t","content":null}', 'content', 'the content is any JSON but null'],
    ['null as content, in spaces', '{"topic":"t","content": null }', 'content', 'the content is any JSON but null'],
    ['content of 513 levels', `{"topic":"t","content":${'['.repeat(513) + ']'.repeat(513)}}`, 'content', 'more than 512 levels'],
    ['content of a million levels', `{"topic":"t","content":${'[{"a":'.repeat(1_000_000)}`, 'content', 'more than 512 levels'],

    // Id
    ['a number as id', '{"topic":"t","content":1,"id":1}', 'id', 'an id is a string'],
    ['null as id', '{"topic":"t","content":1,"id":null}', 'id', 'an id is a string'],
    ['an empty id', '{"topic":"t","content":1,"id":""}', 'id', 'an id has 1 to 96 characters'],
    ['an id too long', `{"topic":"t","content":1,"id":"${'a'.repeat(97)}"}`, 'id', 'an id has 1 to 96 characters'],
    ['an id with a slash', '{"topic":"t","content":1,"id":"a/b"}', 'id', 'an id has 1 to 96 characters'],
    ['an id with a line break', '{"topic":"t","content":1,"id":"a\\n"}', 'id', 'an id has 1 to 96 characters'],

    // Key
    ['a number as key', '{"topic":"t","content":1,"key":1}', 'key', 'a key is a string'],
    ['an empty key', '{"topic":"t","content":1,"key":""}', 'key', 'a key has 1 to 256 bytes of UTF-8, this has 0'],
    ['a key too long in bytes', `{"topic":"t","content":1,"key":"${'é'.repeat(128)}a"}`, 'key', 'this has 257'],
    ['a control character in the key', '{"topic":"t","content":1,"key":"a\\r\\nb"}', 'key', 'a key has no control characters'],
    ['U+007F in the key', '{"topic":"t","content":1,"key":"\u007f"}', 'key', 'a key has no control characters'],
    ['U+0085 in the key', '{"topic":"t","content":1,"key":"\\u0085"}', 'key', 'a key has no control characters'],
    ['a lone surrogate in the key', '{"topic":"t","content":1,"key":"\\ud83d"}', 'key', 'a key has no lone surrogates'],

    // Headers
    ['an array as headers', '{"topic":"t","content":1,"headers":["a"]}', 'headers', 'headers are an object of strings'],
    ['null as headers', '{"topic":"t","content":1,"headers":null}', 'headers', 'headers are an object of strings'],
    ['a header that is no string', '{"topic":"t","content":1,"headers":{"a":1}}', 'headers', 'a header value is a string'],
    ['a header in capitals', '{"topic":"t","content":1,"headers":{"A":"1"}}', 'headers', 'a header name has 1 to 64 characters'],
    ['a header without a name', '{"topic":"t","content":1,"headers":{"":"1"}}', 'headers', 'a header name has 1 to 64 characters'],
    ['a header name too long', `{"topic":"t","content":1,"headers":{"${'a'.repeat(65)}":"1"}}`, 'headers', 'a header name has 1 to 64'],
    [
      'a header named __proto__',
      '{"topic":"t","content":1,"headers":{"__proto__":"1"}}',
      'headers',
      'a header name has 1 to 64 characters',
    ],
    ['a header twice', '{"topic":"t","content":1,"headers":{"a":"1","\\u0061":"2"}}', 'headers', 'the header "a" is there twice'],
    ['a line break in a header', '{"topic":"t","content":1,"headers":{"a":"1\\r\\nx: y"}}', 'headers', 'no control characters'],
    ['U+009F in a header', '{"topic":"t","content":1,"headers":{"a":"\u009f"}}', 'headers', 'no control characters'],
    ['a lone surrogate in a header', '{"topic":"t","content":1,"headers":{"a":"\\udc00"}}', 'headers', 'no lone surrogates'],
    [
      'too many headers',
      JSON.stringify({ topic: 't', content: 1, headers: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`h${index}`, ''])) }),
      'headers',
      'at most 64 headers',
    ],
    ['headers too large', `{"topic":"t","content":1,"headers":{"a":"${'x'.repeat(4095)}","b":""}}`, 'headers', 'at most 4096 bytes'],
    ['headers too large in bytes', `{"topic":"t","content":1,"headers":{"ab":"${'é'.repeat(2048)}"}}`, 'headers', 'at most 4096 bytes'],
  ])('%s: 400, and the answer names field and rule', (_case, body, field, reason) => {
    const error = refusal(body);
    expect(error).toMatchObject({ status: 400, field, code: 'MMMQ_REFUSED' });
    expect(error.reason).toContain(reason);
    const answer = JSON.parse(error.body()) as unknown;
    expect(answer).toEqual({ acknowledgement: 'NACK', ...(field === undefined ? {} : { field }), reason: error.reason });
  });

  it.each([
    ['a byte that UTF-8 never has', [0xff]],
    ['an overlong form', [0xc0, 0xaf]],
    ['a character cut in two', [0xe2, 0x82]],
    ['a surrogate as bytes', [0xed, 0xa0, 0x80]],
  ])('%s: 400, also deep inside the content', (_case, bytes) => {
    const body = Buffer.concat([Buffer.from('{"topic":"t","content":{"a":"'), Buffer.from(bytes), Buffer.from('"}}')]);
    expect(refusal(body)).toMatchObject({ status: 400, field: undefined, reason: 'the body is not valid UTF-8' });
  });

  it.each(['', 'a b', '"a"', 'a, b', 'a/b', 'é', 'x'.repeat(97)])('the Idempotency-Key %j: 400, field id', (idempotencyKey) => {
    const error = refusal('{"topic":"t","content":1}', { idempotencyKey });
    expect(error).toMatchObject({ status: 400, field: 'id' });
    expect(error.reason).toContain('Idempotency-Key');
  });

  it('an Idempotency-Key that differs from the id: 400, field id', () => {
    const error = refusal('{"topic":"t","content":1,"id":"a"}', { idempotencyKey: 'b' });
    expect(error).toMatchObject({ status: 400, field: 'id' });
    expect(error.reason).toContain('differ');
  });

  it('shows a name that somebody sent only in part, and nothing of it that moves the line', () => {
    const long = refusal(JSON.stringify({ topic: 't', content: 1, ['x'.repeat(100_000)]: 1 }));
    expect(long.field).toBe(`${'x'.repeat(64)}…`);
    expect(long.body().length).toBeLessThan(400);
    const wild = refusal(JSON.stringify({ 'a\r\n\u202e\u2028\ud800b c😀': 1 }));
    expect(wild.field).toBe('a\\u{d}\\u{a}\\u{202e}\\u{2028}\\u{d800}b c😀');
  });
});
