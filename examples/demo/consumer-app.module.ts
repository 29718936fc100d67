import { EventEmitter } from 'node:events';
import { Body, Controller, type DynamicModule, Headers, HttpCode, Inject, Module, Post } from '@nestjs/common';

/** A message as it came to the consumer. */
export interface Arrival {
  readonly topic: string;
  readonly offset: string;
  readonly content: unknown;
}

export const ARRIVAL = 'arrival';

/** All that a consumer needs: a route that takes a message and says that it has it. */
@Controller('messages')
class MessagesController {
  constructor(@Inject(EventEmitter) private readonly arrivals: EventEmitter) {}

  @Post()
  @HttpCode(200)
  receive(
    @Headers('mmmq-topic') topic: string,
    @Headers('mmmq-offset') offset: string,
    @Body() { content }: { readonly content: unknown },
  ): { readonly acknowledgement: 'ACK' } {
    const arrival: Arrival = { topic, offset, content };
    this.arrivals.emit(ARRIVAL, arrival);
    return { acknowledgement: 'ACK' };
  }
}

/** An application that consumes messages. It tells `arrivals` of each. */
@Module({})
export class ConsumerAppModule {
  static of(arrivals: EventEmitter): DynamicModule {
    return { module: ConsumerAppModule, controllers: [MessagesController], providers: [{ provide: EventEmitter, useValue: arrivals }] };
  }
}
