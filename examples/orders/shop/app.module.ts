import { Module } from '@nestjs/common';
import { ProducerModule } from 'mmmq/producer';
import { OrdersController } from './orders.controller.js';
import { shopSettings } from './shop.settings.js';

@Module({
  imports: [ProducerModule.forRoot({ broker: shopSettings.brokerUrl, spool: { dir: shopSettings.spoolDir } })],
  controllers: [OrdersController],
})
export class AppModule {}
