import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata, type Provider } from '@nestjs/common';
import { DispatcherCoreModule } from '../dispatcher/index.js';
import { BROKER_SETTINGS, type BrokerOptions, brokerSettings } from '../settings/index.js';
import { StorageModule } from '../storage/index.js';
import { TopicQueueModule } from '../topic-queue/index.js';
import { MessagesController } from './messages.controller.js';
import { PublishBodyReader } from './publish-body.reader.js';
import { PublishRouteClaim } from './publish-route.claim.js';

export interface BrokerModuleAsyncOptions
  extends Pick<ModuleMetadata, 'imports'>, Pick<FactoryProvider<BrokerOptions>, 'inject' | 'useFactory'> {}

@Module({})
class BrokerSettingsModule {}

/**
 * The broker: `POST /messages`, its topic queues on disk, and the dispatchers that the application declares.
 *
 * Imported once, in the root module; what it exports ({@link TopicQueueService}, {@link DispatcherRegistry}) can be injected everywhere. A second import would be a
 * second broker, and cannot start on the same data directory.
 */
@Module({})
export class BrokerModule {
  /** @throws {InvalidSettingsError} naming the option, its value and the rule that it breaks */
  static forRoot(options: BrokerOptions = {}): DynamicModule {
    return brokerOf({ provide: BROKER_SETTINGS, useValue: brokerSettings(options, 'BrokerModule.forRoot') });
  }

  /** As {@link forRoot}, with options that a factory gives. */
  static forRootAsync({ imports = [], inject = [], useFactory }: BrokerModuleAsyncOptions): DynamicModule {
    return brokerOf(
      {
        provide: BROKER_SETTINGS,
        inject,
        useFactory: async (...dependencies) => brokerSettings(await useFactory(...dependencies), 'BrokerModule.forRootAsync'),
      },
      imports,
    );
  }
}

function brokerOf(settingsProvider: Provider, imports: NonNullable<ModuleMetadata['imports']> = []): DynamicModule {
  const settings: DynamicModule = { module: BrokerSettingsModule, imports, providers: [settingsProvider], exports: [BROKER_SETTINGS] };
  const topicQueues = TopicQueueModule.register(StorageModule.register(settings));
  const dispatchers = DispatcherCoreModule.register(topicQueues);
  return {
    module: BrokerModule,
    global: true,
    imports: [settings, topicQueues, dispatchers],
    controllers: [MessagesController],
    providers: [PublishBodyReader, PublishRouteClaim],
    exports: [topicQueues, dispatchers],
  };
}
