import { describe, expect, it } from '@jest/globals';
import { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { BodyReader } from './body.reader.js';
import { RouteClaim } from './route.claim.js';

class OtherAdapter extends ExpressAdapter {
  override getType(): string {
    return 'koa';
  }
}

function readerOf(module: string): BodyReader {
  const rule = { mediaTypes: ['application/json'], maxBytes: 100, setting: 'max-bytes' };
  return new BodyReader({
    single: rule,
    batch: rule,
    pendingMaxBytes: 100,
    words: { one: 'publish', many: 'publishes', place: 'the broker', module },
  });
}

describe('RouteClaim', () => {
  it('refuses the start on a platform whose bodies it cannot claim, and says which one it needs', () => {
    const host = new HttpAdapterHost();
    const claim = new RouteClaim(host, new ApplicationConfig(), readerOf('BrokerModule'), 'messages');
    host.httpAdapter = new OtherAdapter();

    expect(() => claim.onModuleInit()).toThrow(/koa.*@nestjs\/platform-express or @nestjs\/platform-fastify/);
  });

  it.each([
    ['messages', 'messages'],
    ['messages', 'messages/batch'],
    ['Messages', 'messages'],
  ])('refuses a path that another module of the application serves, and names both and the remedy (%s, %s)', (one, other) => {
    const host = new HttpAdapterHost();
    const claimAs = (module: string, path: string): RouteClaim => new RouteClaim(host, new ApplicationConfig(), readerOf(module), path);
    claimAs('BrokerModule', one);

    expect(() => claimAs('ConsumerModule', other)).toThrow(
      /BrokerModule and ConsumerModule both serve POST .*ConsumerModule.forRoot\(\{ path/,
    );
    claimAs('ConsumerModule', 'consumer/messages');
    expect(() => claimAs('ConsumerModule', 'consumer/messages')).not.toThrow();
    host.httpAdapter = new ExpressAdapter();
    expect(() => claimAs('ConsumerModule', 'consumer/messages')).toThrow(/ConsumerModule is imported twice.*POST \/consumer\/messages/);
    expect(() => new RouteClaim(new HttpAdapterHost(), new ApplicationConfig(), readerOf('ConsumerModule'), other)).not.toThrow();
  });
});
