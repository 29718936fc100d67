import { Inject, Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import { ErrorCode, MmmqError } from '../core/index.js';
import type { Listener } from './listener.js';
import { definitionsOf } from './message-listener.decorator.js';

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];
type Method = (content: unknown, context: unknown) => unknown;
type Methods = Record<string, Method>;

/** Finds the `@MessageListener` methods of all providers and controllers of the application. */
@Injectable()
export class ListenerExplorer {
  private readonly scanner = new MetadataScanner();

  constructor(@Inject(DiscoveryService) private readonly discovery: DiscoveryService) {}

  /**
   * Each method of each object once, under however many tokens the object is provided. To be called when all providers are made.
   * @throws {MmmqError} for a listener on a provider that has no one instance
   */
  explore(): readonly Listener[] {
    const seen = new Set<object>();
    return [...this.discovery.getProviders(), ...this.discovery.getControllers()].flatMap((wrapper) => {
      if (!wrapper.isDependencyTreeStatic() || wrapper.isTransient) {
        this.refuseListeners(wrapper);
        return [];
      }
      const instance: unknown = wrapper.instance;
      // Aliases of a value, modules without an instance, providers whose factory gave nothing.
      if (typeof instance !== 'object' || instance === null || seen.has(instance)) return [];
      seen.add(instance);
      return this.listenersOf(instance as Methods);
    });
  }

  private listenersOf(instance: Methods): Listener[] {
    return this.definedOn(Object.getPrototypeOf(instance) as object | null).map(({ method, definition }) => ({
      ...definition,
      name: `${instance.constructor.name}.${method}`,
      call: async (content, context) => {
        // Looked up with each call, as it may be replaced; one that is gone then fails, and acknowledges nothing.
        const result = await (instance[method] as Method).call(instance, content, context);
        // As everywhere in Nest. One that nobody subscribes to does nothing, and its message would be acknowledged.
        if (isObservable(result)) await lastValueFrom(result, { defaultValue: undefined });
      },
    }));
  }

  private definedOn(prototype: object | null): { method: string; definition: ReturnType<typeof definitionsOf>[number] }[] {
    return this.scanner
      .getAllMethodNames(prototype)
      .flatMap((method) => definitionsOf((prototype as Methods)[method] as object).map((definition) => ({ method, definition })));
  }

  private refuseListeners({ metatype, name }: Wrapper): void {
    const [found] = this.definedOn(((metatype as { prototype?: object } | null)?.prototype ?? null) as object | null);
    if (found === undefined) return;
    throw new MmmqError(
      ErrorCode.INVALID_SETTINGS,
      `${String(name)}.${found.method} is a @MessageListener, and its provider is made anew for each request or user: make the provider and all ` +
        'that it depends on singletons, and get what belongs to a request with ModuleRef.resolve()',
    );
  }
}
