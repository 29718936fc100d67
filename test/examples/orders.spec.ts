import { describe, expect, it } from '@jest/globals';
import { readStored } from '../../src/message/index.js';
import { fileEngine, readTexts } from '../support/file-engine.js';
import { nodeProcesses } from '../support/node-process.js';
import { temporaryDirectories } from '../support/temporary-directory.js';
import { until } from '../support/until.js';
import { Company, type Mail } from './company.js';
import { Customers, type TakenOrder } from './customers.js';

const TIMEOUT_MS = 120_000;

const newDirectory = temporaryDirectories();
const start = nodeProcesses();

/** Waits until so many orders are mailed, or no more come. @returns all mails, in the order of mailing */
async function mailsOf(company: Company, orders: number): Promise<readonly Mail[]> {
  let bytes = -1;
  let mails: readonly Mail[] = [];
  const areMailed = async (): Promise<boolean> => {
    const now = await company.mailBytes().catch(() => 0);
    if (now === bytes) return false;
    mails = await company.mails();
    bytes = now;
    return new Set(mails.map(({ order }) => order)).size >= orders;
  };
  // What is missing then, the test says better than this does.
  await until(areMailed).catch(() => undefined);
  return mails;
}

/** The first mail for each place of each topic. */
function firsts(mails: readonly Mail[]): readonly Mail[] {
  return [...new Map(mails.toReversed().map((mail) => [`${mail.topic}/${mail.offset}`, mail])).values()].toReversed();
}

/** What a topic has, or a customer has ordered of it, in the order of the list. */
function grouped<Item, Value>(items: readonly Item[], key: (item: Item) => string, value: (item: Item) => Value): Record<string, Value[]> {
  const groups: Record<string, Value[]> = {};
  for (const item of items) (groups[key(item)] ??= []).push(value(item));
  return groups;
}

async function storedIn(brokerDir: string, name: string): Promise<unknown[]> {
  const { engine } = fileEngine(brokerDir);
  const topic = (await engine.open()).find((each) => each.topic === name);
  const texts = topic === undefined ? [] : await readTexts(topic);
  await engine.close();
  return texts.map((text = '') => JSON.parse(String(readStored(Buffer.from(text))?.content)) as unknown);
}

describe('the example of a shop, a broker and a mailer', () => {
  it(
    'mails every order that was taken, in order, while the broker, the mailer and the shop are killed and the mail server is out of order',
    async () => {
      const company = await Company.open(await newDirectory(), start);
      const customers = new Customers(company, 4);
      let kills = 0;
      const kill = async (name: 'broker' | 'mailer' | 'shop'): Promise<void> => {
        await company.end(name, 'SIGKILL');
        kills += 1;
      };
      for (const misfortune of ['mailer', 'mail server', 'shop'] as const) {
        await customers.take(30, 'acknowledged');
        await company.printed('mailer', /mailed /);
        if (misfortune === 'mailer') await kill('mailer');
        if (misfortune === 'mail server') {
          await company.breakMailServer();
          await company.printed('mailer', /the mail server is out of order/);
        }
        await kill('broker');
        await customers.take(30, 'spooled');
        if (misfortune === 'shop') {
          await kill('shop');
          await company.start('shop');
        }
        await company.start('broker');
        // The spool is sent, or these would be in it.
        await customers.take(30, 'acknowledged');
        if (misfortune === 'mailer') await company.start('mailer');
        if (misfortune === 'mail server') await company.mendMailServer();
      }
      await customers.goHome();
      const { taken, spooled } = customers;
      const mails = await mailsOf(company, taken.length);

      const handled = firsts(mails);
      console.log(
        `${taken.length} orders, ${spooled} of them spooled, ${handled.length} handled, ${mails.length - handled.length} repeats, ${kills} kills`,
      );
      // None lost, none invented, none stored twice.
      expect(handled.map(({ order }) => order).toSorted()).toEqual(taken.map(({ id }) => id).toSorted());
      // Per topic in the order of the log, without a gap,
      for (const offsets of Object.values(
        grouped(
          handled,
          ({ topic }) => topic,
          ({ offset }) => offset,
        ),
      ))
        expect(offsets).toEqual(offsets.map((_, place) => place));
      // which is the order in which each customer has ordered,
      const places = new Map(handled.map(({ order, topic, offset }) => [order, { topic, offset }]));
      const placesOf = grouped(
        taken,
        ({ customer, topic }) => `${customer} ${topic}`,
        ({ id }) => places.get(id)?.offset ?? -1,
      );
      for (const offsets of Object.values(placesOf)) expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
      // and what the shop has said of it.
      expect(taken.filter((order) => !isWhereItWasSaid(order, places.get(order.id)))).toEqual([]);
      // A mail that went out again is the same.
      expect(
        mails.filter(
          ({ order, topic, offset, to }) =>
            places.get(order)?.topic !== topic || places.get(order)?.offset !== offset || to !== `${order.split('-')[0]}@example.com`,
        ),
      ).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    'makes a dead letter of the order without an e-mail address, mails those behind it, and takes an order once under its key',
    async () => {
      const company = await Company.open(await newDirectory(), start);
      const tea = (to: string): object => ({ item: 'tea', email: `${to}@example.com` });
      const receipt = (id: string, offset: number): object => ({
        status: 201,
        body: { outcome: 'acknowledged', topic: 'order.standard', offset, id },
      });
      expect(await company.order(tea('ann'), 'ann-1')).toEqual(receipt('ann-1', 0));
      expect(await company.order({ item: 'cake' }, 'cake-1')).toEqual(receipt('cake-1', 1));
      expect(await company.order({ email: 'ann@example.com' }, 'ann-2')).toMatchObject({ status: 400 });
      expect(await company.order(tea('ann'), 'ann-1')).toEqual(receipt('ann-1', 0));
      expect(await company.order(tea('bob'), 'ann-1')).toMatchObject({ status: 422 });
      expect(await company.order(tea('bob'), 'bob 1')).toMatchObject({ status: 400 });
      expect(await company.order(tea('bob'), 'bob-1')).toEqual(receipt('bob-1', 2));
      expect((await mailsOf(company, 2)).map(({ to, offset }) => [to, offset])).toEqual([
        ['ann@example.com', 0],
        ['bob@example.com', 2],
      ]);
      await company.end('broker', 'SIGTERM');
      expect(await storedIn(company.brokerDir, 'dlq.mailer')).toEqual([
        expect.objectContaining({
          topic: 'order.standard',
          offset: 1,
          attempts: 1,
          reason: 'content: email: email must be an email',
          message: expect.objectContaining({ id: 'cake-1', content: { id: 'cake-1', item: 'cake' } }),
        }),
      ]);
    },
    TIMEOUT_MS,
  );
});

function isWhereItWasSaid({ topic, offset }: TakenOrder, place: { readonly topic: string; readonly offset: number } | undefined): boolean {
  return place?.topic === topic && (offset === undefined || offset === place.offset);
}
