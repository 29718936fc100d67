import 'reflect-metadata';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Injectable, Module, type BeforeApplicationShutdown, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { recordingLogger } from '../../test/support/disk-queue.js';
import { temporaryDirectories } from '../../test/support/temporary-directory.js';
import { DiskQueue, DiskQueueModule, getDiskQueueToken, InjectDiskQueue } from './index.js';

const newDirectory = temporaryDirectories();
const { logger } = recordingLogger();

@Injectable()
class Shop implements BeforeApplicationShutdown {
  constructor(
    @InjectDiskQueue('orders') readonly orders: DiskQueue,
    @InjectDiskQueue('mails') readonly mails: DiskQueue,
  ) {}

  /** What is still under way when the application ends. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.orders.put(Buffer.from('the last order'));
  }
}

/** It does not import the module of the queues itself. */
@Module({ providers: [Shop] })
class ShopModule {}

function compile(...imports: Parameters<typeof Test.createTestingModule>[0]['imports'] & {}): Promise<TestingModule> {
  return Test.createTestingModule({ imports }).setLogger(logger).compile();
}

describe('DiskQueueModule', () => {
  it.each(['forRoot', 'forRootAsync'] as const)(
    '%s provides each queue under its name, everywhere, and closes them when nothing is under way any more',
    async (how) => {
      const dir = await newDirectory();
      const queues = [
        { dir, name: 'orders', logger },
        { dir, name: 'mails', logger },
      ];
      const module =
        how === 'forRoot'
          ? DiskQueueModule.forRoot(queues)
          : DiskQueueModule.forRootAsync({ names: ['orders', 'mails'], useFactory: () => Promise.resolve(queues) });
      const app = (await compile(module, ShopModule)).createNestApplication();
      app.useLogger(false);
      await app.init();
      const shop = app.get(Shop);
      await shop.orders.put(Buffer.from('an order'));
      expect([shop.orders.name, shop.mails.name]).toEqual(['orders', 'mails']);
      expect(app.get(getDiskQueueToken('orders'))).toBe(shop.orders);
      await app.close();
      await expect(shop.mails.put(Buffer.from('x'))).rejects.toMatchObject({ code: 'MMMQ_CLOSED' });
      expect(await readFile(join(dir, 'orders.diskqueue.meta.dat'), 'utf8')).toMatch(/^2\n0,0\n/);
    },
  );

  it('gives the options from providers of other modules', async () => {
    const dir = await newDirectory();
    @Module({ providers: [{ provide: 'SPOOL_DIR', useValue: dir }], exports: ['SPOOL_DIR'] })
    class SettingsModule {}
    const module = DiskQueueModule.forRootAsync({
      names: ['orders'],
      imports: [SettingsModule],
      inject: ['SPOOL_DIR'],
      useFactory: (given: string) => [{ dir: given, name: 'orders', logger }],
    });
    const app = await compile(module);
    expect(app.get<DiskQueue>(getDiskQueueToken('orders'))).toBeInstanceOf(DiskQueue);
    await app.close();
  });

  it('can be imported twice, with different queues', async () => {
    const dir = await newDirectory();
    const app = await compile(
      DiskQueueModule.forRoot([{ dir, name: 'orders', logger }]),
      DiskQueueModule.forRoot([{ dir, name: 'mails', logger }]),
      ShopModule,
    );
    expect(app.get(Shop as Type<Shop>).mails.name).toBe('mails');
    await app.close();
  });

  it('refuses an option that breaks its rule, a name that is given twice, and a name that the factory does not give', async () => {
    const dir = await newDirectory();
    expect(() => DiskQueueModule.forRoot([{ dir, name: 'orders', syncEvery: 0 }])).toThrow(/syncEvery .*whole number from 1/);
    expect(() =>
      DiskQueueModule.forRoot([
        { dir, name: 'orders' },
        { dir: `${dir}/other`, name: 'orders' },
      ]),
    ).toThrow(/"orders": must be given once/);
    const orders = { dir, name: 'orders', logger };
    await expect(compile(DiskQueueModule.forRootAsync({ names: ['mails'], useFactory: () => [orders] }))).rejects.toThrow(
      /names has mails, and the factory gives the queues orders/,
    );
    await expect(compile(DiskQueueModule)).rejects.toThrow(/import DiskQueueModule\.forRoot/);
  });

  it('lets go of the queues that it has opened where another one cannot be', async () => {
    const dir = await newDirectory();
    const orders = { dir, name: 'orders', logger };
    await expect(compile(DiskQueueModule.forRoot([orders, { dir: '/dev/null', name: 'mails', logger }]))).rejects.toMatchObject({
      code: 'MMMQ_IO',
    });
    const queue = await DiskQueue.open(orders);
    await queue.close();
  });
});
