import { describe, expect, it } from '@jest/globals';
import { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { brokerSettings } from '../settings/index.js';
import { PublishBodyReader } from './publish-body.reader.js';
import { PublishRouteClaim } from './publish-route.claim.js';

class OtherAdapter extends ExpressAdapter {
  override getType(): string {
    return 'koa';
  }
}

describe('PublishRouteClaim', () => {
  it('refuses the start on a platform whose bodies it cannot claim, and says which one it needs', () => {
    const host = new HttpAdapterHost();
    const bodies = new PublishBodyReader(brokerSettings({}, 'BrokerModule.forRoot'));
    const claim = new PublishRouteClaim(host, new ApplicationConfig(), bodies);
    host.httpAdapter = new OtherAdapter();

    expect(() => claim.onModuleInit()).toThrow(/koa.*@nestjs\/platform-express or @nestjs\/platform-fastify/);
  });
});
