import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from './app.module.js';
import { Mailbox } from './mailbox.js';
import { mailerSettings } from './mailer.settings.js';

const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: ['error', 'warn'] });
// The broker takes messages of 1 MiB and sends them as they are. Express reads 100 kB unless it is told, and a 413 would come again for ever.
app.useBodyParser('json', { limit: '2mb' });
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(mailerSettings.port, '127.0.0.1');
const { length } = app.get(Mailbox).mails;
console.log(`The mailer takes messages on ${await app.getUrl()}/messages and keeps its ${length} mails in ${mailerSettings.file}`);
