import { RequestMethod } from '@nestjs/common';
import type { ApplicationConfig } from '@nestjs/core';

/** Below the path of the route that takes one message. */
export const BATCH_PATH = 'batch';

/** Where the application has the two routes, `/messages` and `/messages/batch` say, behind its global prefix. Settled once it is initialised. */
export class RoutePaths {
  /** @param path of the first route, without a slash in front */
  constructor(
    private readonly config: ApplicationConfig,
    private readonly path: string,
  ) {}

  get single(): string {
    return this.prefixed(this.path);
  }

  get batch(): string {
    return this.prefixed(`${this.path}/${BATCH_PATH}`);
  }

  private prefixed(path: string): string {
    const isExcluded = this.config
      .getGlobalPrefixOptions()
      .exclude?.some(
        ({ requestMethod, pathRegex }) =>
          (requestMethod === RequestMethod.POST || requestMethod === RequestMethod.ALL) && pathRegex.test(`/${path}`),
      );
    const prefix = isExcluded ? [] : this.config.getGlobalPrefix().split('/');
    return `/${[...prefix, path].filter((word) => word !== '').join('/')}`;
  }
}
