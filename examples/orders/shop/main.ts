import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { shopSettings } from './shop.settings.js';

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
// With its hooks a shop that is told to stop ends the deliveries under way and closes the log.
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(shopSettings.port, '127.0.0.1');
console.log(`The shop takes orders on ${await app.getUrl()}/orders and keeps its messages in ${shopSettings.dataDir}`);
