import {
  Inject,
  Module,
  Optional,
  type DynamicModule,
  type FactoryProvider,
  type ModuleMetadata,
  type OnApplicationShutdown,
  type Provider,
  type Type,
} from '@nestjs/common';
import { Host, TopicPattern } from '../core/index.js';
import { dispatcherSettings, type DispatcherDefinition, type DispatcherSettings } from '../settings/index.js';
import type { ConsumerClient } from './consumer-client/index.js';
import { DispatcherGroup } from './dispatcher-group.js';
import { getDispatcherToken } from './dispatcher.decorators.js';
import { Dispatcher } from './dispatcher.js';

/** How the dispatchers of one `DispatcherModule.forRoot` speak to their consumers. */
export interface DispatcherModuleOptions {
  /** Modules whose providers the consumer client or the factory needs, such as `HttpModule`. */
  readonly imports?: ModuleMetadata['imports'];
  /**
   * The class that all dispatchers of this import speak to their consumers with, made by Nest with its dependencies;
   * `HttpServiceConsumerClient`, say. Without it each dispatcher has a connection pool of its own.
   */
  readonly consumerClient?: Type<ConsumerClient>;
}

/**
 * Options of `DispatcherModule.forRootAsync`. `useFactory` gives the definitions, or a promise of them; `inject` lists the providers that it
 * is called with, which come from `imports` or from global modules.
 */
export interface DispatcherModuleAsyncOptions
  extends DispatcherModuleOptions, Pick<FactoryProvider<readonly DispatcherDefinition[]>, 'inject' | 'useFactory'> {
  /** The dispatchers that can be injected with `@InjectDispatcher(name)`; the factory gives each of them. None by default. */
  readonly names?: readonly string[];
}

/** The client of this import, where it was given. */
const CONSUMER_CLIENT = Symbol('mmmq.dispatcher.consumer-client');

/**
 * Declares dispatchers from definitions. They run in an application that imports `BrokerModule`. May be imported several times, with
 * different names.
 */
@Module({})
export class DispatcherModule implements OnApplicationShutdown {
  constructor(@Optional() @Inject(CONSUMER_CLIENT) private readonly client: ConsumerClient | undefined) {}

  /**
   * One provider for each definition, injected with `@InjectDispatcher(name)` where this module is imported.
   * @throws {InvalidSettingsError} naming the definition, the value and the rule that it breaks
   */
  static forRoot(definitions: readonly DispatcherDefinition[] = [], options: DispatcherModuleOptions = {}): DynamicModule {
    const dispatchers = dispatcherSettings(definitions, 'DispatcherModule.forRoot').map((settings) => ({
      provide: getDispatcherToken(settings.name),
      inject: [{ token: CONSUMER_CLIENT, optional: true }],
      useFactory: (client?: ConsumerClient) => dispatcherOf(settings, client),
    }));
    return {
      module: DispatcherModule,
      imports: [...(options.imports ?? [])],
      providers: [...consumerClientProviders(options), ...dispatchers],
      exports: dispatchers.map(({ provide }) => provide),
    };
  }

  /**
   * As `forRoot`, with definitions that a factory gives. Which of them can be injected has to be said in `names`, as Nest knows the
   * providers before it runs the factory. A definition that breaks a rule, and a name that the factory does not give, refuse the start.
   */
  static forRootAsync(options: DispatcherModuleAsyncOptions): DynamicModule {
    const definitions = Symbol('mmmq.dispatcher.definitions');
    const group: Provider[] = [
      { provide: definitions, inject: options.inject ?? [], useFactory: options.useFactory },
      {
        provide: DispatcherGroup,
        inject: [definitions, { token: CONSUMER_CLIENT, optional: true }],
        useFactory: (given: readonly DispatcherDefinition[], client?: ConsumerClient) =>
          new DispatcherGroup(dispatcherSettings(given, 'DispatcherModule.forRootAsync').map((settings) => dispatcherOf(settings, client))),
      },
    ];
    const named = (options.names ?? []).map((name) => ({
      provide: getDispatcherToken(name),
      inject: [DispatcherGroup],
      useFactory: (dispatchers: DispatcherGroup) => dispatchers.get(name),
    }));
    return {
      module: DispatcherModule,
      imports: [...(options.imports ?? [])],
      providers: [...consumerClientProviders(options), ...group, ...named],
      exports: named.map(({ provide }) => provide),
    };
  }

  /** Dispatchers stop earlier, at the beginning of the shutdown: nothing uses the client any more. */
  async onApplicationShutdown(): Promise<void> {
    await this.client?.close();
  }
}

function consumerClientProviders({ consumerClient }: DispatcherModuleOptions): Provider[] {
  return consumerClient === undefined ? [] : [{ provide: CONSUMER_CLIENT, useClass: consumerClient }];
}

function dispatcherOf({ name, host, patterns, ...options }: DispatcherSettings, client: ConsumerClient | undefined): Dispatcher {
  return new Dispatcher(
    name,
    Host.of(host),
    patterns.map((pattern) => TopicPattern.of(pattern)),
    { ...options, client },
  );
}
