import { Body, Controller, Headers, HttpCode, Inject, Post } from '@nestjs/common';
import { Mailbox } from './mailbox.js';

/** What the broker tells about a message beside its body. */
interface DeliveryHeaders {
  readonly 'mmmq-topic': string;
  readonly 'mmmq-offset': string;
  /** Only of a message that was published with an id. */
  readonly 'mmmq-message-id'?: string;
}

interface Delivery {
  readonly content?: { readonly item?: unknown; readonly email?: unknown } | null;
}

type Verdict =
  | { readonly acknowledgement: 'ACK' }
  | {
      readonly acknowledgement: 'NACK';
      /** Sending it again would not help: to the dead letters at once. */
      readonly retry: false;
      readonly reason: string;
    };

const ACK: Verdict = { acknowledgement: 'ACK' };

@Controller('messages')
export class MessagesController {
  constructor(@Inject(Mailbox) private readonly mailbox: Mailbox) {}

  /**
   * Mails the customer of each new order.
   *
   * ACK only when the mail is out. What is thrown on the way, a full disk say, is answered with 500 and so brings the message again later;
   * NACK is for a message that is itself at fault.
   */
  @Post()
  @HttpCode(200)
  async receive(@Headers() headers: DeliveryHeaders, @Body() { content }: Delivery): Promise<Verdict> {
    // The dispatcher brings every event of an order; the others are none of the mailer's business.
    if (headers['mmmq-topic'] !== 'order.created') return ACK;
    const { item, email } = content ?? {};
    if (typeof item !== 'string') return nack('the order names no item');
    if (typeof email !== 'string' || !email.includes('@')) return nack('the order has no e-mail address');

    await this.mailbox.sendOnce({ message: nameOf(headers), to: email, text: `Thank you for your order of ${item}.` });
    return ACK;
  }
}

/** The same for each delivery of a message, and for a message that was published twice with one id. Ids are unique within a topic. */
function nameOf({ 'mmmq-topic': topic, 'mmmq-offset': offset, 'mmmq-message-id': id }: DeliveryHeaders): string {
  return id === undefined ? `${topic} at offset ${offset}` : `${topic} with id ${id}`;
}

function nack(reason: string): Verdict {
  return { acknowledgement: 'NACK', retry: false, reason };
}
