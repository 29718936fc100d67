import { Injectable, Logger } from '@nestjs/common';
import { MessageListener, RetryLater, type MessageContext } from 'mmmq/consumer';
import { MailServer } from './mail-server.js';
import { Order } from './order.dto.js';

@Injectable()
export class Mailer {
  private readonly logger = new Logger(Mailer.name);

  constructor(private readonly mailServer: MailServer) {}

  /** Mails the customer of each order. Returning is ACK: only when the mail is out. */
  @MessageListener('order.*', { dto: Order })
  async onOrder({ id, item, email }: Order, { topic, offset }: MessageContext): Promise<void> {
    try {
      await this.mailServer.send({ messageId: `${topic}/${offset}`, to: email, text: `Thank you for your order ${id} of ${item}.` });
    } catch (error) {
      // No fault of this order: it comes again until the mail server is back, and uses up none of its resends.
      throw new RetryLater(1000, `the mail server is out of order: ${String(error)}`);
    }
    this.logger.log(`mailed ${email} for the order ${id}`);
  }
}
