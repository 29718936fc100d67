import { randomUUID } from 'node:crypto';
import { Body, Controller, Headers, HttpException, Post, ServiceUnavailableException } from '@nestjs/common';
import { ProduceError, Producer, ProduceRefusedError, type Receipt } from 'mmmq/producer';
import { NewOrder } from './new-order.dto.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly producer: Producer) {}

  /**
   * Takes an order. It is taken when its message is on a disk: the broker's, or while the broker is away that of the shop, in its spool.
   *
   * A client that got no answer sends its order again under the same `Idempotency-Key`, and it is still one order.
   */
  @Post()
  async take(@Body() { express = false, ...order }: NewOrder, @Headers('idempotency-key') id: string = randomUUID()): Promise<Receipt> {
    // Messages of one topic wait for each other. Those of two do not: an express order passes the others.
    const topic = express ? 'order.express' : 'order.standard';
    try {
      // The id of the order is the id of its message: the broker stores it once, however often it is sent.
      return await this.producer.produce(topic, { id, ...order }, { id });
    } catch (error) {
      throw answerTo(error);
    }
  }
}

function answerTo(error: unknown): unknown {
  // The key is none, or was used for another order.
  if (error instanceof ProduceRefusedError && error.field === 'id') return new HttpException(error.reason, error.status);
  if (error instanceof ProduceError) return new ServiceUnavailableException(`not taken, send it again under the key ${error.id}`);
  return error;
}
