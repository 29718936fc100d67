import {
  Inject,
  Module,
  Optional,
  type DynamicModule,
  type FactoryProvider,
  type ModuleMetadata,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { ErrorCode, MmmqError } from '../core/index.js';
import { Producer } from './producer.js';
import type { ProducerOptions } from './producer.options.js';
import { producerSettings } from './producer.settings.js';

/** Options of `ProducerModule.forRoot`: those of the producer, and whether the module is global. */
export interface ProducerModuleOptions extends ProducerOptions {
  /** The producer can be injected everywhere, without an import of the module there; false by default, as with `HttpModule`. */
  readonly global?: boolean | undefined;
}

/**
 * Options of `ProducerModule.forRootAsync`. `useFactory` gives the options of the producer, or a promise of them; `inject` lists the providers that
 * it is called with, which come from `imports` or from global modules.
 */
export interface ProducerModuleAsyncOptions
  extends Pick<ModuleMetadata, 'imports'>, Pick<FactoryProvider<ProducerOptions>, 'inject' | 'useFactory'> {
  /** As for `forRoot`. */
  readonly global?: boolean | undefined;
}

/**
 * Opens a `Producer` before the application starts, provides it, and closes it when the application ends: last of all, when no request is under way
 * any more. May be imported several times, with different brokers; each import is a producer of its own.
 */
@Module({})
export class ProducerModule implements OnApplicationShutdown {
  /**
   * The class alone, without `forRoot`, has no producer. It refuses rather than be silent.
   * @internal
   */
  constructor(@Optional() @Inject(Producer) private readonly producer: Producer | undefined) {
    if (producer !== undefined) return;
    throw new MmmqError(
      ErrorCode.INVALID_SETTINGS,
      'ProducerModule is imported without its options: import ProducerModule.forRoot({ broker: … }) instead',
    );
  }

  /**
   * Provides `Producer`.
   * @throws {InvalidValueError} naming the option, its value and the rule that it breaks
   */
  static forRoot({ global = false, ...options }: ProducerModuleOptions): DynamicModule {
    producerSettings(options);
    return moduleOf({ provide: Producer, useFactory: () => Producer.open(options) }, global);
  }

  /** As `forRoot`, with options that a factory gives. One that breaks a rule refuses the start. */
  static forRootAsync({ global = false, imports = [], inject = [], useFactory }: ProducerModuleAsyncOptions): DynamicModule {
    const provider: FactoryProvider<Producer> = {
      provide: Producer,
      inject,
      useFactory: async (...dependencies) => Producer.open(await useFactory(...dependencies)),
    };
    return moduleOf(provider, global, imports);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.producer?.close();
  }
}

function moduleOf(
  provider: FactoryProvider<Producer>,
  global: boolean,
  imports: NonNullable<ModuleMetadata['imports']> = [],
): DynamicModule {
  return { module: ProducerModule, global, imports: [...imports], providers: [provider], exports: [Producer] };
}
