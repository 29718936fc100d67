import { Module, type DynamicModule } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { DispatcherRegistry } from './dispatcher.registry.js';

/** What runs the dispatchers of an application. `BrokerModule` imports it; an application does not. */
@Module({})
export class DispatcherCoreModule {
  /** @param topicQueueModule the module that exports the `TopicQueueService`; the very same object wherever it is imported, as Nest goes by it */
  static register(topicQueueModule: DynamicModule): DynamicModule {
    return {
      module: DispatcherCoreModule,
      imports: [DiscoveryModule, topicQueueModule],
      providers: [DispatcherRegistry],
      exports: [DispatcherRegistry],
    };
  }
}
