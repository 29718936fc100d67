import { Inject, Injectable } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';
import { RouteClaim } from '../http-route/index.js';
import { PublishBodyReader } from './publish-body.reader.js';

/** Below the global prefix of the application. */
export const PUBLISH_PATH = 'messages';

/** Claims the bodies of publishes. */
@Injectable()
export class PublishRouteClaim extends RouteClaim {
  constructor(
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
    @Inject(ApplicationConfig) config: ApplicationConfig,
    @Inject(PublishBodyReader) bodies: PublishBodyReader,
  ) {
    super(host, config, bodies, PUBLISH_PATH);
  }
}
