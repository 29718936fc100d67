import { Agent as HttpAgent } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { Agent } from 'undici';
import { InvalidValueError } from '../core/index.js';
import { Producer, type ProducerOptions } from './index.js';
import { producerSettings } from './producer.settings.js';

const broker = 'http://localhost:8080/api/';
const settingsOf = (options: object): unknown => producerSettings({ broker, ...options } as ProducerOptions);

describe('the options of a producer', () => {
  it('have defaults', () => {
    const { host, ...settings } = producerSettings({ broker });
    expect(host.url('/messages')).toBe('http://localhost:8080/api/messages');
    expect(settings).toEqual({
      timeoutMs: 10_000,
      deadlineMs: 30_000,
      backoff: { initialMs: 100, maxMs: 5000 },
      lingerMs: 0,
      batch: { maxMessages: 1000, maxBytes: 1_048_576 },
      pendingMaxBytes: 67_108_864,
      headers: {},
      connections: 32,
      spool: undefined,
    });
    expect(producerSettings({ broker, spool: { dir: 'spool' } }).spool).toMatchObject({ name: 'producer', maxMessages: 1_000_000_000 });
  });

  it.each([
    [{ broker: 'localhost:8080' }, /the option broker of Producer "localhost:8080": a host begins with http/],
    [{ broker: 'http://me:secret@localhost' }, /the option broker of Producer .*carries no credentials/],
    [{ broker: undefined }, /the option broker of Producer "undefined": must be the URL/],
    [{ timeoutMs: 0 }, /the option timeoutMs of Producer "0": must be a whole number from 1 to 3600000/],
    [{ deadlineMs: 1.5 }, /the option deadlineMs of Producer "1.5"/],
    [{ lingerMs: '5' }, /the option lingerMs of Producer "5"/],
    [
      { backoff: { initialMs: 10, maxMs: 5 } },
      /the option backoff.initialMs of Producer "10": must not be above backoff.maxMs, which is 5/,
    ],
    [{ backoff: { initial: 10 } }, /the option backoff.initial of Producer "": is unknown; there are initialMs, maxMs/],
    [{ batch: { maxMessages: 10_001 } }, /the option batch.maxMessages of Producer "10001"/],
    [{ batch: 5 }, /the option batch of Producer "5": must be an object with maxMessages, maxBytes/],
    [{ timeout: 5 }, /the option timeout of Producer "": is unknown; there are timeoutMs, /],
    [{ connections: 0 }, /the option connections of Producer/],
    [{ spool: {} }, /the option spool.dir of Producer "undefined": must be the path of a directory/],
    [{ spool: 'spool' }, /the option spool of Producer "spool": must be an object with "dir"/],
    [{ spool: { dir: 'x', name: 'a/b' } }, /the option spool.name of Producer "a\/b"/],
    [{ spool: { dir: 'x', size: 5 } }, /the option spool.size of Producer "": is unknown/],
    [{ headers: { 'a b': 'c' } }, /the option headers of Producer "a b"/],
    [{ headers: { 'Content-Type': 'text/plain' } }, /the option headers of Producer "Content-Type": must not have this one/],
    [{ headers: { a: 'b', A: 'c' } }, /the option headers of Producer "A": must have each name once/],
    [{ agent: new HttpAgent() }, /the option agent of Producer "…": must be a Dispatcher of undici.*an agent of node:http is none/],
    [{ agent: null }, /the option agent of Producer/],
    [{ transport: {} }, /the option transport of Producer "…": must be an object with a method send/],
    [{ observer: 'statsd' }, /the option observer of Producer "statsd": must be an object/],
    [{ logger: { log: () => undefined } }, /the option logger of Producer "…": must be a LoggerService/],
    [{ auth: { username: 'a:b', password: 'c' } }, /the option auth of Producer "…"/],
    [{ auth: { username: 'a', password: 'c' }, headers: { authorization: 'Bearer x' } }, /beside a header authorization/],
  ])('that break a rule are refused: %j', (options, message) => {
    expect(() => settingsOf(options)).toThrow(InvalidValueError);
    expect(() => settingsOf(options)).toThrow(message);
  });

  it('that are objects are taken as they are, and headers may have any name', async () => {
    const agent = new Agent();
    const given = { agent, observer: {}, logger: console, transport: { send: () => undefined, close: () => undefined } };
    expect(settingsOf({ ...given, headers: { constructor: 'a' } })).toMatchObject({ headers: { constructor: 'a' } });
    await agent.close();
  });

  it('that are secret are not in an error', () => {
    expect(() => settingsOf({ headers: { authorization: 'Bearer secrét' } })).toThrow(/^(?!.*secr).*authorization/);
    expect(() => settingsOf({ auth: { username: 'me', password: 5, secret: 'secret' } })).toThrow(/^(?!.*secret)/);
  });

  it('are checked before anything is opened', async () => {
    await expect(Producer.open({ broker, timeoutMs: -1 })).rejects.toThrow(InvalidValueError);
  });
});
