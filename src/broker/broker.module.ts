import { type DynamicModule, type FactoryProvider, Inject, Module, type ModuleMetadata, Optional, type Provider } from '@nestjs/common';
import { ErrorCode, MmmqError } from '../core/index.js';
import { DispatcherCoreModule, DispatcherRegistry } from '../dispatcher/index.js';
import { BROKER_SETTINGS, type BrokerOptions, type BrokerSettings, brokerSettings } from '../settings/index.js';
import { MAX_FILES_IN_USE, MAX_IDLE_OPEN_FILES, openFileLimit, StorageModule } from '../storage/index.js';
import { TopicQueueModule } from '../topic-queue/index.js';
import { MessagesController } from './messages.controller.js';
import { OpenFilesCheck } from './open-files.check.js';
import { PublishBodyReader } from './publish-body.reader.js';
import { PublishRouteClaim } from './publish-route.claim.js';

/** {@link BrokerOptions} that a factory gives, from what `inject` names out of `imports`. */
export interface BrokerModuleAsyncOptions
  extends Pick<ModuleMetadata, 'imports'>, Pick<FactoryProvider<BrokerOptions>, 'inject' | 'useFactory'> {}

@Module({})
class BrokerSettingsModule {}

/**
 * The broker: `POST /messages`, its topic queues on disk, and the dispatchers that the application declares.
 *
 * Imported once, in the root module; what it exports ({@link TopicQueueService}, {@link DispatcherRegistry}) can be injected everywhere. A
 * second import would be a second broker, and cannot start on the same data directory.
 */
@Module({})
export class BrokerModule {
  /**
   * The class alone, without `forRoot`, has no settings and none of its parts. It refuses rather than be silent.
   * @internal
   */
  constructor(@Optional() @Inject(BROKER_SETTINGS) settings: BrokerSettings | undefined) {
    if (settings !== undefined) return;
    throw new MmmqError(ErrorCode.INVALID_SETTINGS, 'BrokerModule is imported without its settings: import BrokerModule.forRoot() instead');
  }

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

const openFilesCheck: FactoryProvider<OpenFilesCheck> = {
  provide: OpenFilesCheck,
  inject: [DispatcherRegistry],
  useFactory: async (registry: DispatcherRegistry) =>
    new OpenFilesCheck({ limit: await openFileLimit(), idleFiles: MAX_IDLE_OPEN_FILES, filesInUse: MAX_FILES_IN_USE }, registry),
};

function brokerOf(settingsProvider: Provider, imports: NonNullable<ModuleMetadata['imports']> = []): DynamicModule {
  const settings: DynamicModule = { module: BrokerSettingsModule, imports, providers: [settingsProvider], exports: [BROKER_SETTINGS] };
  const topicQueues = TopicQueueModule.register(StorageModule.register(settings));
  const dispatchers = DispatcherCoreModule.register(topicQueues);
  return {
    module: BrokerModule,
    global: true,
    imports: [settings, topicQueues, dispatchers],
    controllers: [MessagesController],
    providers: [PublishBodyReader, PublishRouteClaim, openFilesCheck],
    exports: [topicQueues, dispatchers],
  };
}
