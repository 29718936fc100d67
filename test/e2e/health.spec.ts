import { afterEach, describe, expect, it } from '@jest/globals';
import { type INestApplication, VersioningType } from '@nestjs/common';
import request from 'supertest';
import { HealthModule } from '../../src/operations/health/index.js';
import { TopicQueueService } from '../../src/topic-queue/index.js';
import { brokerApplication } from '../support/broker-application.js';
import { MemoryEngine } from '../support/memory-engine.js';

let app: INestApplication;

afterEach(async () => {
  await app.close();
});

async function healthOf(engine: MemoryEngine): Promise<(probe: string) => request.Test> {
  ({ app } = await brokerApplication({
    engine,
    metadata: { imports: [HealthModule] },
    configure: (each) => void each.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' }),
  }));
  return (probe) => request(app.getHttpServer()).get(`/health/${probe}`);
}

describe('GET /health', () => {
  it('says that the process lives and the broker is ready', async () => {
    const health = await healthOf(new MemoryEngine());

    await health('live').expect(200);
    const ready = await health('ready').expect(200);
    expect(ready.body).toMatchObject({ status: 'ok', details: { broker: { status: 'up' } } });
  });

  it('names the topics that refuse appends and why, as long as they do; the process lives', async () => {
    const engine = new MemoryEngine();
    const health = await healthOf(engine);
    engine.reported = [{ topic: 'order.created', reason: 'a sync failed; restart the broker' }];

    const ready = await health('ready').expect(503);
    expect(ready.body).toMatchObject({
      status: 'error',
      details: { broker: { status: 'down', problems: [{ topic: 'order.created', reason: 'a sync failed; restart the broker' }] } },
    });
    await health('live').expect(200);
    engine.reported = [];
    await health('ready').expect(200);
  });

  it('is not ready while the application stops', async () => {
    const health = await healthOf(new MemoryEngine());
    app.get(TopicQueueService).onModuleDestroy();

    const ready = await health('ready').expect(503);
    expect(ready.body).toMatchObject({ details: { broker: { status: 'down', state: 'stopping' } } });
    await health('live').expect(200);
  });
});
