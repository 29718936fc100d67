import { RequestMethod } from '@nestjs/common';
import type { ApplicationConfig } from '@nestjs/core';

export const PUBLISH_PATH = 'messages';
/** Below {@link PUBLISH_PATH}. */
export const BATCH_PATH = 'batch';

/** Where the application has the two routes: `/messages` and `/messages/batch`, behind its global prefix. Settled once it is initialised. */
export class PublishPaths {
  constructor(private readonly config: ApplicationConfig) {}

  get single(): string {
    return this.prefixed(PUBLISH_PATH);
  }

  get batch(): string {
    return this.prefixed(`${PUBLISH_PATH}/${BATCH_PATH}`);
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
