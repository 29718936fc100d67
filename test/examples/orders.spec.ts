import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readStored } from '../../src/message/index.js';
import { fileEngine, readTexts } from '../support/file-engine.js';
import { type NodeProcess, nodeProcesses } from '../support/node-process.js';
import { temporaryDirectories } from '../support/temporary-directory.js';

const ORDERS = join(import.meta.dirname, '../../examples/dist/orders');
const TIMEOUT_MS = 90_000;

interface Mail {
  readonly message: string;
  readonly to: string;
  readonly text: string;
}

const start = nodeProcesses();
const newDirectory = temporaryDirectories();

/** Both services on one directory. Ports are free ones; the mailer comes back on the port that it had. */
class Company {
  mailer!: NodeProcess;
  mailerUrl = '';
  /** How many mails this mailer found when it started; what it sends itself, it prints. */
  private mailsFound = 0;
  private shop!: NodeProcess;
  private shopUrl = '';

  private constructor(private readonly dir: string) {}

  static async open(): Promise<Company> {
    const company = new Company(await newDirectory());
    await company.startMailer();
    await company.startShop();
    return company;
  }

  get dataDir(): string {
    return join(this.dir, 'shop');
  }

  async startMailer(): Promise<void> {
    const port = this.mailerUrl === '' ? '0' : new URL(this.mailerUrl).port;
    this.mailer = start(join(ORDERS, 'mailer/main.js'), {
      cwd: this.dir,
      env: { MAILER_PORT: port, MAILER_FILE: join(this.dir, 'mailer/mails.json') },
    });
    const [, url = '', found = ''] = await this.mailer.printed(/takes messages on (\S+)\/messages and keeps its (\d+) mails in /);
    this.mailerUrl = url;
    this.mailsFound = Number(found);
  }

  async startShop(): Promise<void> {
    this.shop = start(join(ORDERS, 'shop/main.js'), {
      cwd: this.dir,
      env: { SHOP_PORT: '0', SHOP_DATA_DIR: this.dataDir, MAILER_URL: this.mailerUrl },
    });
    this.shopUrl = (await this.shop.printed(/takes orders on (\S+)\/orders/))[1] ?? '';
  }

  stopShop(signal: NodeJS.Signals): ReturnType<NodeProcess['end']> {
    return this.shop.end(signal);
  }

  async order(order: object, headers: Record<string, string> = {}): Promise<{ status: number; offset: number | undefined }> {
    const response = await fetch(`${this.shopUrl}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(order),
    });
    const { offset } = (await response.json()) as { offset?: number };
    return { status: response.status, offset };
  }

  /** Waits until so many mails are sent. */
  async mails(count: number): Promise<readonly Mail[]> {
    await this.mailer.printed(new RegExp(`(^mailed .*\\n[^]*?){${count - this.mailsFound}}`, 'm'));
    return (await (await fetch(`${this.mailerUrl}/mails`)).json()) as Mail[];
  }
}

const tea = (to: string): { item: string; email: string } => ({ item: 'tea', email: `${to}@example.com` });
const addressees = (mails: readonly Mail[]): string[] => mails.map(({ to }) => to);

describe('the example of a shop and its mailer', () => {
  it(
    'brings orders to the mailer, and in order those that were taken while the mailer or the shop was down',
    async () => {
      const company = await Company.open();
      expect(await company.order(tea('ann'))).toEqual({ status: 201, offset: 0 });
      expect(await company.order(tea('bob'))).toEqual({ status: 201, offset: 1 });
      expect(addressees(await company.mails(2))).toEqual(['ann@example.com', 'bob@example.com']);

      expect(await company.mailer.end('SIGINT')).toEqual({ code: 0, signal: null });
      expect(await company.order(tea('cid'))).toEqual({ status: 201, offset: 2 });
      expect(await company.order(tea('dan'))).toEqual({ status: 201, offset: 3 });
      await company.stopShop('SIGKILL');
      await company.startShop();
      expect(await company.order(tea('eve'))).toEqual({ status: 201, offset: 4 });

      await company.startMailer();
      expect(addressees(await company.mails(5))).toEqual(['ann', 'bob', 'cid', 'dan', 'eve'].map((name) => `${name}@example.com`));
      expect(await company.stopShop('SIGINT')).toEqual({ code: 0, signal: null });
    },
    TIMEOUT_MS,
  );

  it(
    'has the order without an e-mail address among the dead letters on disk, and mails those behind it',
    async () => {
      const company = await Company.open();
      await company.order(tea('ann'));
      expect(await company.order({ item: 'cake' }, { 'idempotency-key': 'cake-1' })).toEqual({ status: 201, offset: 1 });
      await company.order(tea('bob'));
      expect(addressees(await company.mails(2))).toEqual(['ann@example.com', 'bob@example.com']);
      await company.stopShop('SIGTERM');

      const { engine } = fileEngine(company.dataDir);
      const deadLetters = (await engine.open()).find(({ topic }) => topic === 'dlq.mail-dispatcher');
      const texts = deadLetters === undefined ? [] : await readTexts(deadLetters);
      await engine.close();
      const contents = texts.map((text = '') => JSON.parse(String(readStored(Buffer.from(text))?.content)) as unknown);
      expect(contents).toEqual([
        expect.objectContaining({
          topic: 'order.created',
          offset: 1,
          attempts: 1,
          reason: 'the order has no e-mail address',
          message: expect.objectContaining({ id: 'cake-1', content: { id: 'cake-1', item: 'cake' } }),
        }),
      ]);
    },
    TIMEOUT_MS,
  );

  it(
    'takes an order once however often it is sent under its key, and mails a message once however often it is delivered',
    async () => {
      const company = await Company.open();
      expect(await company.order(tea('ann'), { 'idempotency-key': 'ann-1' })).toEqual({ status: 201, offset: 0 });
      expect(await company.order(tea('ann'), { 'idempotency-key': 'ann-1' })).toEqual({ status: 201, offset: 0 });
      expect(await company.order(tea('bob'), { 'idempotency-key': 'ann-1' })).toEqual({ status: 422, offset: undefined });
      await company.mails(1);

      const deliver = async (headers: Record<string, string>): Promise<unknown> => {
        const response = await fetch(`${company.mailerUrl}/messages`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'mmmq-topic': 'order.created', ...headers },
          body: JSON.stringify({ topic: 'order.created', content: tea('cid') }),
        });
        return response.json();
      };
      const again = [{ 'mmmq-offset': '0', 'mmmq-message-id': 'ann-1' }, { 'mmmq-offset': '7' }, { 'mmmq-offset': '7' }];
      expect(await Promise.all(again.map(deliver))).toEqual(again.map(() => ({ acknowledgement: 'ACK' })));
      await company.mailer.end();
      await company.startMailer();
      expect(await deliver({ 'mmmq-offset': '7' })).toEqual({ acknowledgement: 'ACK' });
      expect((await company.mails(2)).map(({ message }) => message)).toEqual(['order.created with id ann-1', 'order.created at offset 7']);
    },
    TIMEOUT_MS,
  );

  it(
    'refuses an order that names no item, and publishes nothing',
    async () => {
      const company = await Company.open();
      expect(await company.order({ email: 'ann@example.com' })).toEqual({ status: 400, offset: undefined });
      expect(await company.order(tea('ann'))).toEqual({ status: 201, offset: 0 });
    },
    TIMEOUT_MS,
  );
});
