import { Module } from '@nestjs/common';
import { BrokerModule, Dispatcher, Host, TopicPattern } from 'mmmq';
import { OrdersController } from './orders.controller.js';
import { shopSettings } from './shop.settings.js';

/** The shop has the broker in it: what it publishes is on its own disk, and its dispatcher takes it to the mailer from there. */
@Module({
  imports: [BrokerModule.forRoot({ storage: { rootDir: shopSettings.dataDir } })],
  controllers: [OrdersController],
  providers: [
    {
      provide: 'mail-dispatcher',
      useFactory: () =>
        new Dispatcher('mail-dispatcher', Host.of(shopSettings.mailerUrl), [TopicPattern.of('order.**')], {
          // A mailer that comes back after a long night waits a few seconds for its mail, not a minute.
          backoff: { maxMs: 5000 },
        }),
    },
  ],
})
export class AppModule {}
