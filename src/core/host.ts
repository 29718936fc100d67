import { InvalidValueError } from './mmmq.error.js';

export const WebProtocol = { HTTP: 'http', HTTPS: 'https' } as const;
export type WebProtocol = (typeof WebProtocol)[keyof typeof WebProtocol];

const SCHEME = /^https?:\/\/(?!\/)/i;
const NOT_IN_A_URL = /[\s\\\p{Cc}]/u;
/** Refused, and not repeated in the error either: it ends up in logs. */
const CREDENTIALS = /\/\/[^/]*@/;
const NOT_IN_A_NAME = /[\s\\/?#@\p{Cc}]/u;

/**
 * Where a consumer listens: protocol, name and port, and perhaps a path that stays in front of the broker's own. Who may be called is
 * configuration, so it is read strictly here rather than repaired: no credentials, no query, no fragment, no spaces.
 */
export class Host {
  /** `http://localhost:8081`, without the port where it is the protocol's own (80, 443). */
  readonly origin: string;
  /** `''` or `/base`, without a slash at the end. */
  readonly path: string;

  /**
   * @param name a host name or an IP address; an IPv6 address with or without its brackets
   * @param port 1 to 65535
   * @param path stays in front of what is called, `/base` or `/base/`; none by default
   * @throws {InvalidValueError} when the parts make no host
   */
  constructor(protocol: WebProtocol, name: string, port: number, path: string = '') {
    const authority = name.includes(':') && !name.startsWith('[') ? `[${name}]` : name;
    const address = `${protocol}://${authority}:${port}${path}`;
    if (name === '' || NOT_IN_A_NAME.test(name))
      throw new InvalidValueError('host', address, 'its name is a host name or an IP address alone');
    if (!Number.isInteger(port) || port < 1 || port > 65_535)
      throw new InvalidValueError('host', address, 'a port is a whole number from 1 to 65535');
    if (path !== '' && !path.startsWith('/')) throw new InvalidValueError('host', address, 'its path begins with "/"');
    const url = parse(address);
    this.origin = url.origin;
    this.path = url.pathname.replace(/\/+$/, '');
  }

  /**
   * Reads a host from its URL: `http://localhost:8081`, `https://example.com/base`, `http://[::1]:8081`.
   * @throws {InvalidValueError} when it is not such a URL
   */
  static of(url: string): Host {
    const { protocol, hostname, port, pathname } = parse(url);
    const webProtocol = protocol === 'https:' ? WebProtocol.HTTPS : WebProtocol.HTTP;
    const ownPort = webProtocol === WebProtocol.HTTPS ? 443 : 80;
    return new Host(webProtocol, hostname, port === '' ? ownPort : Number(port), pathname);
  }

  /** The address of something at this host. `suffix` begins with `/`. */
  url(suffix: string): string {
    return `${this.origin}${this.path}${suffix}`;
  }

  toString(): string {
    return `${this.origin}${this.path}`;
  }
}

/** The URL class repairs a good deal in silence (spaces, back-slashes, missing slashes), so what it must not see is refused before. */
function parse(value: string): URL {
  const refuse = (rule: string): never => {
    throw new InvalidValueError('host', value.replace(CREDENTIALS, '//…@'), rule);
  };
  if (!SCHEME.test(value)) return refuse('a host begins with http:// or https:// and its name, as in http://localhost:8081');
  if (NOT_IN_A_URL.test(value)) return refuse('a host has no spaces, back-slashes or control characters');
  if (value.includes('?')) return refuse('a host has no query ("?")');
  if (value.includes('#')) return refuse('a host has no fragment ("#")');
  const authority = value.split('/', 3)[2] ?? '';
  if (authority.includes('@')) return refuse('a host carries no credentials ("@")');
  if (!URL.canParse(value)) return refuse('a host is a URL, as in http://localhost:8081 or http://[::1]:8081/base');
  return new URL(value);
}
