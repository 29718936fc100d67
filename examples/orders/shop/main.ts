import { Logger, ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { shopSettings } from './shop.settings.js';

const app = await NestFactory.create(AppModule);
app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
// With its hooks a shop that is told to stop puts what the broker has not taken yet into its spool.
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(shopSettings.port, shopSettings.host);
Logger.log(`takes orders on ${await app.getUrl()}/orders`, 'Shop');
