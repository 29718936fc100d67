import { type DynamicModule, type FactoryProvider, Inject, Module, Optional, type Provider } from '@nestjs/common';
import { ApplicationConfig, DiscoveryModule, HttpAdapterHost } from '@nestjs/core';
import { ErrorCode, MmmqError } from '../core/index.js';
import { RouteClaim } from '../http-route/index.js';
import { ConsumerEndpoint } from './consumer.endpoint.js';
import {
  CONSUMER_OPTION_NAMES,
  CONSUMER_SETTINGS,
  type ConsumerOptions,
  type ConsumerRouteOptions,
  type ConsumerSettings,
  consumerSettings,
  type RouteSettings,
  routeSettings,
} from './consumer.options.js';
import { deliveriesControllerOf } from './deliveries.controller.js';
import { DeliveryBodyReader } from './delivery-body.reader.js';
import { ListenerExplorer } from './listener.explorer.js';

/** Options of `ConsumerModule.forRoot`. */
export interface ConsumerModuleOptions extends ConsumerRouteOptions, ConsumerOptions {}

/** {@link ConsumerOptions} that a factory gives, from what `inject` names out of `imports`. Nest has to know the routes before, so they stand beside it. */
export interface ConsumerModuleAsyncOptions extends ConsumerRouteOptions, Pick<FactoryProvider<ConsumerOptions>, 'inject' | 'useFactory'> {}

/**
 * Takes what dispatchers send, `POST /messages` and `POST /messages/batch`, and hands it to the `@MessageListener` methods of all providers and
 * controllers of the application. Imported once, in the root module.
 */
@Module({})
export class ConsumerModule {
  /**
   * The class alone, without `forRoot`, has no routes. It refuses rather than be silent.
   * @internal
   */
  constructor(@Optional() @Inject(CONSUMER_SETTINGS) settings: ConsumerSettings | undefined) {
    if (settings !== undefined) return;
    throw new MmmqError(
      ErrorCode.INVALID_SETTINGS,
      'ConsumerModule is imported without its settings: import ConsumerModule.forRoot() instead',
    );
  }

  /** @throws {InvalidValueError} naming the option, its value and the rule that it breaks */
  static forRoot(options: ConsumerModuleOptions = {}): DynamicModule {
    const origin = 'ConsumerModule.forRoot';
    const route = routeSettings(options, CONSUMER_OPTION_NAMES, origin);
    return consumerOf(route, { provide: CONSUMER_SETTINGS, useValue: consumerSettings(route.others, origin) });
  }

  /** As `forRoot`, with options that a factory gives; `path` and `guards` are given here. */
  static forRootAsync({ inject = [], useFactory, ...route }: ConsumerModuleAsyncOptions): DynamicModule {
    const origin = 'ConsumerModule.forRootAsync';
    return consumerOf(routeSettings(route, ['inject', 'useFactory'], origin), {
      provide: CONSUMER_SETTINGS,
      inject,
      useFactory: async (...dependencies) => consumerSettings(await useFactory(...dependencies), `the useFactory of ${origin}`),
    });
  }
}

function consumerOf({ path, guards, imports }: RouteSettings, settings: Provider): DynamicModule {
  const routeClaim: FactoryProvider<RouteClaim> = {
    provide: RouteClaim,
    inject: [HttpAdapterHost, ApplicationConfig, DeliveryBodyReader],
    useFactory: (host: HttpAdapterHost, config: ApplicationConfig, bodies: DeliveryBodyReader) =>
      new RouteClaim(host, config, bodies, path),
  };
  const endpoint: FactoryProvider<ConsumerEndpoint> = {
    provide: ConsumerEndpoint,
    inject: [CONSUMER_SETTINGS, ListenerExplorer],
    useFactory: (given: ConsumerSettings, explorer: ListenerExplorer) => new ConsumerEndpoint(given, explorer),
  };
  return {
    module: ConsumerModule,
    imports: [DiscoveryModule, ...imports],
    controllers: [deliveriesControllerOf(path, guards)],
    providers: [settings, DeliveryBodyReader, routeClaim, ListenerExplorer, endpoint],
    exports: [ConsumerEndpoint],
  };
}
