import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { BrokerExpressAdapter } from 'mmmq/express';
import { AppModule } from './app.module.js';
import { brokerSettings } from './broker.settings.js';

const app = await NestFactory.create<NestExpressApplication>(AppModule, new BrokerExpressAdapter());
app.disable('x-powered-by');
// With its hooks a broker that is told to stop ends the deliveries under way and closes its files.
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(brokerSettings.port, brokerSettings.host);
Logger.log(`takes messages on ${await app.getUrl()} and keeps them in ${brokerSettings.dataDir}`, 'Broker');
