import { Module } from '@nestjs/common';
import { Mailbox } from './mailbox.js';
import { MailsController } from './mails.controller.js';
import { MessagesController } from './messages.controller.js';

/** The mailer consumes messages. It speaks HTTP with the broker and needs nothing of mmmq. */
@Module({ controllers: [MessagesController, MailsController], providers: [Mailbox] })
export class AppModule {}
