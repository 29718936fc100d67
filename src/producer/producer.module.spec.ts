import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { Injectable, Module, type BeforeApplicationShutdown, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { recordingLogger } from '../../test/support/disk-queue.js';
import { acknowledge, ScriptedTransport } from '../../test/support/scripted-transport.js';
import { Producer, ProducerModule, type Receipt } from './index.js';

const { logger } = recordingLogger();
const broker = 'http://localhost:8080';

@Injectable()
class Shop implements BeforeApplicationShutdown {
  last: Receipt | undefined;

  constructor(readonly producer: Producer) {}

  /** What is still under way when the application ends. */
  async beforeApplicationShutdown(): Promise<void> {
    this.last = await this.producer.produce('order.created', 'the last order');
  }
}

@Module({ providers: [Shop] })
class ShopModule {}

function compile(...imports: Parameters<typeof Test.createTestingModule>[0]['imports'] & {}): Promise<TestingModule> {
  return Test.createTestingModule({ imports }).setLogger(logger).compile();
}

describe('ProducerModule', () => {
  it.each(['forRoot', 'forRootAsync'] as const)('%s provides a producer, and closes it when nothing is under way any more', async (how) => {
    const options = { broker, logger, transport: new ScriptedTransport(acknowledge()) };
    const module =
      how === 'forRoot'
        ? ProducerModule.forRoot({ ...options, global: true })
        : ProducerModule.forRootAsync({ global: true, useFactory: () => Promise.resolve(options) });
    const app = (await compile(module, ShopModule)).createNestApplication();
    app.useLogger(false);
    await app.init();
    const shop = app.get(Shop);
    expect(await shop.producer.produce('order.created', 1)).toMatchObject({ offset: 0 });
    await app.close();
    expect(shop.last).toMatchObject({ outcome: 'acknowledged', offset: 1 });
    await expect(shop.producer.produce('order.created', 2)).rejects.toMatchObject({ code: 'MMMQ_CLOSED' });
  });

  it('is for the modules that import it, unless it is global', async () => {
    const own = ProducerModule.forRoot({ broker, logger, transport: new ScriptedTransport(acknowledge()) });
    await expect(compile(own, ShopModule)).rejects.toThrow(/can't resolve dependencies of the Shop \(\?\)/);
    @Module({ imports: [own], providers: [Shop] })
    class ImportingModule {}
    const app = await compile(ImportingModule);
    expect(app.get(Shop as Type<Shop>, { strict: false }).producer).toBeInstanceOf(Producer);
    await app.close();
  });

  it('takes its options from a factory with what is injected', async () => {
    @Module({ providers: [{ provide: 'BROKER', useValue: broker }], exports: ['BROKER'] })
    class SettingsModule {}
    const app = await compile(
      ProducerModule.forRootAsync({
        imports: [SettingsModule],
        inject: ['BROKER'],
        useFactory: (url: string) => ({ broker: url, logger }),
      }),
    );
    expect(app.get(Producer, { strict: false })).toBeInstanceOf(Producer);
    await app.close();
  });

  it('can be imported twice, for two brokers', async () => {
    const [one, other] = [new ScriptedTransport(acknowledge()), new ScriptedTransport(acknowledge())];
    @Module({ imports: [ProducerModule.forRoot({ broker, logger, transport: one })], providers: [Shop] })
    class OneModule {}
    @Injectable()
    class Mailer {
      constructor(readonly producer: Producer) {}
    }
    @Module({ imports: [ProducerModule.forRoot({ broker, logger, transport: other })], providers: [Mailer] })
    class OtherModule {}
    const app = await compile(OneModule, OtherModule);
    await app.get(Shop as Type<Shop>, { strict: false }).producer.produce('order.created', 1);
    await app.get(Mailer as Type<Mailer>, { strict: false }).producer.produce('mail.sent', 2);
    expect([one.contents, other.contents]).toEqual([[[1]], [[2]]]);
    await app.close();
  });

  it('refuses an option that breaks its rule, and an import without options', async () => {
    expect(() => ProducerModule.forRoot({ broker, timeoutMs: 0 })).toThrow(/the option timeoutMs of Producer/);
    await expect(compile(ProducerModule.forRootAsync({ useFactory: () => ({ broker: 'x' }) }))).rejects.toThrow(/the option broker/);
    await expect(compile(ProducerModule)).rejects.toThrow(/import ProducerModule\.forRoot/);
  });
});
