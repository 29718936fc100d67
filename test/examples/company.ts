import { readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Gate } from '../support/gate.js';
import type { NodeProcess, NodeProcessOptions } from '../support/node-process.js';

const ORDERS = join(import.meta.dirname, '../../examples/dist/orders');

/** The applications, each with what it says when it is ready. */
const READY = {
  broker: /takes messages on (\S+) and keeps/,
  mailer: /takes messages on (\S+)\/messages and mails/,
  shop: /takes orders on (\S+)\/orders/,
};
export type ApplicationName = keyof typeof READY;

/** A line of what the mailer has mailed. */
export interface Mail {
  readonly topic: string;
  readonly offset: number;
  readonly order: string;
  readonly to: string;
}

/** The three applications of the example, each in a process of its own, on one directory. Ports are free ones, and kept through restarts. */
export class Company {
  private readonly running = new Map<ApplicationName, NodeProcess>();
  private readonly urls: Record<ApplicationName, string> = { broker: '', mailer: '', shop: '' };
  private shop = new Gate();

  private constructor(
    private readonly dir: string,
    private readonly newProcess: (script: string, options: NodeProcessOptions) => NodeProcess,
  ) {}

  static async open(dir: string, newProcess: (script: string, options: NodeProcessOptions) => NodeProcess): Promise<Company> {
    const company = new Company(dir, newProcess);
    // Who is called stands before who calls, as ports are known only then.
    for (const name of ['mailer', 'broker', 'shop'] as const) await company.start(name);
    return company;
  }

  get brokerDir(): string {
    return join(this.dir, 'examples/orders/data/broker');
  }

  /** Starts an application and waits until it is ready. */
  async start(name: ApplicationName): Promise<void> {
    const { broker, mailer, shop } = this.urls;
    const env = {
      BROKER_PORT: portOf(broker),
      MAILER_PORT: portOf(mailer),
      SHOP_PORT: portOf(shop),
      BROKER_URL: broker,
      MAILER_URL: mailer,
      NO_COLOR: '1',
    };
    const application = this.newProcess(join(ORDERS, name, 'main.js'), { cwd: this.dir, env });
    this.running.set(name, application);
    this.urls[name] = (await application.printed(READY[name]))[1] ?? '';
    if (name === 'shop') this.shop.open();
  }

  async end(name: ApplicationName, signal: NodeJS.Signals): Promise<void> {
    if (name === 'shop') this.shop = new Gate();
    await this.running.get(name)?.end(signal);
  }

  /** Waits until an application, since its last start, has printed it. */
  async printed(name: ApplicationName, pattern: RegExp): Promise<void> {
    await this.running.get(name)?.printed(pattern);
  }

  /** Resolved while the shop is there. */
  get shopIsOpen(): Promise<unknown> {
    return this.shop.opened;
  }

  /** One request of a customer. Rejects where the shop gives no answer. */
  async order(order: object, key: string): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const response = await fetch(`${this.urls.shop}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(order),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  /** Moves the directory away that stands for the mail server. */
  breakMailServer(): Promise<void> {
    return rename(this.mailServerDir, `${this.mailServerDir}.away`);
  }

  mendMailServer(): Promise<void> {
    return rename(`${this.mailServerDir}.away`, this.mailServerDir);
  }

  /** The bytes of all mails: they grow with each one. */
  async mailBytes(): Promise<number> {
    return (await stat(this.mailFile)).size;
  }

  /** All that was mailed, in the order of mailing. */
  async mails(): Promise<readonly Mail[]> {
    const lines = (await readFile(this.mailFile, 'utf8')).split('\n').slice(0, -1);
    return lines.map((line) => {
      const { messageId, to, text } = JSON.parse(line) as { messageId: string; to: string; text: string };
      const [topic = '', offset] = messageId.split('/');
      return { topic, offset: Number(offset), order: / order (\S+) of /.exec(text)?.[1] ?? '', to };
    });
  }

  private get mailServerDir(): string {
    return join(this.dir, 'examples/orders/data/mail-server');
  }

  private get mailFile(): string {
    return join(this.mailServerDir, 'mails.ndjson');
  }
}

/** 0, a free one, where there is no URL yet. */
function portOf(url: string): string {
  return url === '' ? '0' : new URL(url).port;
}
