import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { mailerSettings } from './mailer.settings.js';

const app = await NestFactory.create(AppModule);
// With its hooks a mailer that is told to stop answers first for what it is mailing.
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(mailerSettings.port, mailerSettings.host);
Logger.log(`takes messages on ${await app.getUrl()}/messages and mails to ${mailerSettings.mailServerDir}`, 'Mailer');
