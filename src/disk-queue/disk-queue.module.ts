import {
  Inject,
  Module,
  Optional,
  type DynamicModule,
  type FactoryProvider,
  type ModuleMetadata,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import { ErrorCode, InvalidValueError, MmmqError } from '../core/index.js';
import { getDiskQueueToken } from './disk-queue.decorators.js';
import { DiskQueueGroup } from './disk-queue.group.js';
import { diskQueueSettings, type DiskQueueOptions } from './disk-queue.options.js';

/**
 * Options of `DiskQueueModule.forRootAsync`. `useFactory` gives the options of the queues, or a promise of them; `inject` lists the providers
 * that it is called with, which come from `imports` or from global modules.
 */
export interface DiskQueueModuleAsyncOptions
  extends Pick<ModuleMetadata, 'imports'>, Pick<FactoryProvider<readonly DiskQueueOptions[]>, 'inject' | 'useFactory'> {
  /** The queues that can be injected with `@InjectDiskQueue(name)`; the factory gives each of them. */
  readonly names: readonly string[];
}

/**
 * Opens disk queues before the application starts, provides each under its name everywhere in it, and closes them when it ends: last of all,
 * when no request is under way any more. May be imported several times, with different queues.
 */
@Module({})
export class DiskQueueModule implements OnApplicationShutdown {
  /**
   * The class alone, without `forRoot`, has no queues. It refuses rather than be silent.
   * @internal
   */
  constructor(@Optional() @Inject(DiskQueueGroup) private readonly group: DiskQueueGroup | undefined) {
    if (group !== undefined) return;
    throw new MmmqError(
      ErrorCode.INVALID_SETTINGS,
      'DiskQueueModule is imported without its queues: import DiskQueueModule.forRoot([…]) instead',
    );
  }

  /**
   * One provider for each queue, injected with `@InjectDiskQueue(name)`.
   * @throws {InvalidValueError} naming the option, its value and the rule that it breaks
   */
  static forRoot(queues: readonly DiskQueueOptions[]): DynamicModule {
    const names = queues.map((options) => diskQueueSettings(options).name);
    return moduleOf(names, { provide: DiskQueueGroup, useFactory: () => DiskQueueGroup.open(queues) });
  }

  /**
   * As `forRoot`, with options that a factory gives. Which queues can be injected has to be said in `names`, as Nest knows the providers before
   * it runs the factory. An option that breaks a rule, and a name that the factory does not give, refuse the start.
   */
  static forRootAsync({ names, imports = [], inject = [], useFactory }: DiskQueueModuleAsyncOptions): DynamicModule {
    return moduleOf(
      names,
      {
        provide: DiskQueueGroup,
        inject,
        useFactory: async (...dependencies) => DiskQueueGroup.open(await useFactory(...dependencies)),
      },
      imports,
    );
  }

  async onApplicationShutdown(): Promise<void> {
    await this.group?.close();
  }
}

function moduleOf(names: readonly string[], group: Provider, imports: NonNullable<ModuleMetadata['imports']> = []): DynamicModule {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new InvalidValueError('the name of a queue of DiskQueueModule', twice, 'must be given once');
  const queues = names.map((name) => ({
    provide: getDiskQueueToken(name),
    inject: [DiskQueueGroup],
    useFactory: (opened: DiskQueueGroup) => opened.get(name),
  }));
  return {
    module: DiskQueueModule,
    global: true,
    imports: [...imports],
    providers: [group, ...queues],
    exports: queues.map(({ provide }) => provide),
  };
}
