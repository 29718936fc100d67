import { type DynamicModule, Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { TopicQueueService } from './topic-queue.service.js';

/** The topic queues, over the engine of a storage module. */
@Module({})
export class TopicQueueModule {
  /** @param storage the module that exports {@link ENGINE} */
  static register(storage: DynamicModule): DynamicModule {
    return {
      module: TopicQueueModule,
      imports: [EventEmitterModule.forRoot(), storage],
      providers: [TopicQueueService],
      exports: [TopicQueueService],
    };
  }
}
