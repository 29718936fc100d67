import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** A connection on which a test sends bytes as it likes, also those that no HTTP client would send. */
export class RawHttp {
  #received = '';
  #changed: (() => void) | undefined;

  private constructor(readonly socket: Socket) {
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      this.#received += chunk;
      this.#changed?.();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => this.#changed?.());
  }

  static async to(port: number): Promise<RawHttp> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new RawHttp(socket);
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** Waits for one whole answer with a Content-Length. Undefined when the connection closes before it. */
  async answer(): Promise<RawAnswer | undefined> {
    for (;;) {
      const answer = this.#take();
      if (answer !== undefined || this.socket.closed) return answer;
      await new Promise<void>((resolve) => (this.#changed = resolve));
    }
  }

  /** Waits for the end of the connection, in whatever way it comes. */
  async closed(): Promise<void> {
    if (!this.socket.closed) await new Promise<void>((resolve) => this.socket.once('close', () => resolve()));
  }

  #take(): RawAnswer | undefined {
    const end = this.#received.indexOf('\r\n\r\n');
    if (end === -1) return undefined;
    const [statusLine = '', ...lines] = this.#received.slice(0, end).split('\r\n');
    const headers = new Map(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const bodyEnd = end + 4 + Number(headers.get('content-length'));
    if (this.#received.length < bodyEnd) return undefined;
    const answer = { status: Number(statusLine.split(' ')[1]), headers, body: this.#received.slice(end + 4, bodyEnd) };
    this.#received = this.#received.slice(bodyEnd);
    return answer;
  }
}
