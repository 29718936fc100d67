import { randomUUID } from 'node:crypto';
import { BadRequestException, Body, Controller, Headers, HttpException, Inject, Post, ServiceUnavailableException } from '@nestjs/common';
import { messageOf, MmmqError, PublishRefusedError, TopicQueueService } from 'mmmq';

/** The content of `order.created`. */
interface Order {
  readonly id: string;
  readonly item: string;
  readonly email?: string;
}

interface Receipt {
  readonly id: string;
  readonly topic: string;
  readonly offset: number;
}

@Controller('orders')
export class OrdersController {
  constructor(@Inject(TopicQueueService) private readonly topicQueues: TopicQueueService) {}

  /**
   * Takes an order: `{"item":"tea","email":"ann@example.com"}`. It is taken when its event is on disk, whether the mailer is there or not.
   *
   * A client that got no answer sends its order again under the same `Idempotency-Key`, and it is still one order.
   */
  @Post()
  async take(@Body() body: unknown, @Headers('idempotency-key') id: string = randomUUID()): Promise<Receipt> {
    const order: Order = { id, ...orderOf(body) };
    try {
      // The id of the order is the id of its message: the broker stores it once, and the mailer knows it again.
      const { topic, offset } = await this.topicQueues.append(messageOf({ topic: 'order.created', id, content: order }));
      return { id, topic, offset };
    } catch (error) {
      throw answerTo(error);
    }
  }
}

function orderOf(body: unknown): Omit<Order, 'id'> {
  const { item, email } = (body ?? {}) as Partial<Record<keyof Order, unknown>>;
  if (typeof item !== 'string' || item === '') throw new BadRequestException('an order names an item');
  if (email === undefined) return { item };
  if (typeof email !== 'string') throw new BadRequestException('the email of an order is a string');
  return { item, email };
}

function answerTo(error: unknown): unknown {
  if (error instanceof PublishRefusedError) return new HttpException(error.reason, error.status);
  if (error instanceof MmmqError) return new ServiceUnavailableException(`the order is not taken, send it again later: ${error.message}`);
  return error;
}
