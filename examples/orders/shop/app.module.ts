import { Module } from '@nestjs/common';
import { ProducerModule } from 'mmmq/producer';
import { OrdersController } from './orders.controller.js';
import { shopSettings } from './shop.settings.js';

@Module({
  imports: [
    ProducerModule.forRoot({
      broker: shopSettings.brokerUrl,
      spool: { dir: shopSettings.spoolDir },
      // A broker that comes back has the first spooled order a second later at most.
      backoff: { maxMs: 1000 },
    }),
  ],
  controllers: [OrdersController],
})
export class AppModule {}
