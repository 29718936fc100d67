import { describe, expect, it } from '@jest/globals';
import { Host, InvalidValueError, WebProtocol } from './index.js';

describe('a host', () => {
  it.each([
    ['http://localhost:8081', 'http://localhost:8081', ''],
    ['http://localhost:8081/', 'http://localhost:8081', ''],
    ['http://localhost:8081/base/', 'http://localhost:8081', '/base'],
    ['http://localhost/a/b//', 'http://localhost', '/a/b'],
    ['https://example.com', 'https://example.com', ''],
    ['https://example.com:443', 'https://example.com', ''],
    ['http://example.com:443', 'http://example.com:443', ''],
    ['HTTP://Example.COM:80/Base', 'http://example.com', '/Base'],
    ['http://127.0.0.1:1', 'http://127.0.0.1:1', ''],
    ['http://[::1]:8081/base', 'http://[::1]:8081', '/base'],
    ['https://[2001:db8::1]', 'https://[2001:db8::1]', ''],
    ['http://my_service:8080/a@b', 'http://my_service:8080', '/a@b'],
  ])('is read from %s', (url, origin, path) => {
    const host = Host.of(url);
    expect(host).toMatchObject({ origin, path });
    expect(host.url('/messages')).toBe(`${origin}${path}/messages`);
    expect(String(host)).toBe(`${origin}${path}`);
  });

  it.each([
    ['', 'begins with http:// or https://'],
    ['localhost:8081', 'begins with http:// or https://'],
    ['//localhost', 'begins with http:// or https://'],
    ['ftp://localhost', 'begins with http:// or https://'],
    ['file:///etc/passwd', 'begins with http:// or https://'],
    ['http:localhost', 'begins with http:// or https://'],
    ['http:///localhost', 'begins with http:// or https://'],
    [' http://localhost', 'begins with http:// or https://'],
    ['http://local host', 'no spaces'],
    ['http://localhost ', 'no spaces'],
    ['http://localhost\n', 'no spaces'],
    ['http://local\thost', 'no spaces'],
    ['http://localhost\\base', 'no spaces, back-slashes'],
    ['http://localhost?', 'no query'],
    ['http://localhost/?a=1', 'no query'],
    ['http://localhost/#', 'no fragment'],
    ['http://@localhost', 'no credentials'],
    ['http://user:secret@localhost', 'no credentials'],
    ['http://', 'is a URL'],
    ['http://localhost:65536', 'is a URL'],
    ['http://localhost:port', 'is a URL'],
    ['http://[::1', 'is a URL'],
    ['http://localhost:0', 'a port is a whole number from 1 to 65535'],
  ])('is not read from %j, and the error names the rule', (url, rule) => {
    const read = () => Host.of(url);
    expect(read).toThrow(InvalidValueError);
    expect(read).toThrow(rule);
  });

  it('keeps credentials out of its error', () => {
    expect(() => Host.of('http://user:secret@localhost')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    );
    expect(() => Host.of('http://user:sec@ret@localhost')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('ret') }),
    );
  });

  it('is made of protocol, name and port', () => {
    expect(String(new Host(WebProtocol.HTTP, 'localhost', 8081))).toBe('http://localhost:8081');
    expect(String(new Host(WebProtocol.HTTPS, 'example.com', 443, '/base/'))).toBe('https://example.com/base');
    expect(String(new Host(WebProtocol.HTTP, '::1', 8081))).toBe('http://[::1]:8081');
    expect(String(new Host(WebProtocol.HTTP, '[::1]', 8081))).toBe('http://[::1]:8081');
  });

  it.each([
    ['', 8081, '', 'its name is'],
    ['a/b', 8081, '', 'its name is'],
    ['user@localhost', 8081, '', 'its name is'],
    ['localhost:80', 8081, '', 'is a URL'],
    ['localhost', 0, '', 'a port is'],
    ['localhost', 65_536, '', 'a port is'],
    ['localhost', 80.5, '', 'a port is'],
    ['localhost', Number.NaN, '', 'a port is'],
    ['localhost', 8081, 'base', 'its path begins with "/"'],
    ['localhost', 8081, '/base?x', 'no query'],
  ])('is not made of name %j, port %d and path %j', (name, port, path, rule) => {
    const make = () => new Host(WebProtocol.HTTP, name, port, path);
    expect(make).toThrow(InvalidValueError);
    expect(make).toThrow(rule);
  });
});
