import { Controller, Get, Inject } from '@nestjs/common';
import { type Mail, Mailbox } from './mailbox.js';

@Controller('mails')
export class MailsController {
  constructor(@Inject(Mailbox) private readonly mailbox: Mailbox) {}

  /** All mails that were sent, the oldest first. */
  @Get()
  list(): readonly Mail[] {
    return this.mailbox.mails;
  }
}
