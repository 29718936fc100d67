import { Inject } from '@nestjs/common';

/** The token under which a dispatcher of `DispatcherModule` is provided; of use for a provider of one's own too. */
export function getDispatcherToken(name: string): string {
  return `mmmq.dispatcher.${name}`;
}

/** Injects the `Dispatcher` of this name. Its module is one that imports `DispatcherModule`. */
export function InjectDispatcher(name: string): ParameterDecorator & PropertyDecorator {
  return Inject(getDispatcherToken(name));
}
