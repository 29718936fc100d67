import { Module } from '@nestjs/common';
import { ConsumerModule, InMemoryDeduplication } from 'mmmq/consumer';
import { MailServer } from './mail-server.js';
import { Mailer } from './mailer.js';

/** Messages come at least once. What comes again is not mailed again, as long as this process lives. */
@Module({ imports: [ConsumerModule.forRoot({ deduplication: new InMemoryDeduplication() })], providers: [Mailer, MailServer] })
export class AppModule {}
