import { type DynamicModule, Module } from '@nestjs/common';
import { BrokerModule, Dispatcher, Host, TopicPattern } from 'mmmq';

export const DISPATCHER = 'order-dispatcher';
export const PATTERN = 'order.**';

/** An application with the broker in it, and a dispatcher that is declared as a provider like any other. */
@Module({})
export class BrokerAppModule {
  /** @param consumerUrl where the messages go, as in `http://127.0.0.1:8081` */
  static of(dataDir: string, consumerUrl: string): DynamicModule {
    return {
      module: BrokerAppModule,
      imports: [BrokerModule.forRoot({ storage: { rootDir: dataDir } })],
      providers: [{ provide: DISPATCHER, useFactory: () => new Dispatcher(DISPATCHER, Host.of(consumerUrl), [TopicPattern.of(PATTERN)]) }],
    };
  }
}
