import { type CanActivate, Controller, Inject, Logger, Post, Req, Res, type Type, UseGuards, VERSION_NEUTRAL } from '@nestjs/common';
import {
  answer,
  BATCH_PATH,
  type PlatformRequest,
  type PlatformResponse,
  refusalAnswer,
  requestOf,
  responseOf,
} from '../http-route/index.js';
import { ClientSignal } from './client-signal.js';
import { ConsumerEndpoint } from './consumer.endpoint.js';
import { DeliveryBodyReader } from './delivery-body.reader.js';

/**
 * The two routes of a consumer. The bodies are read as bytes, without a parser or a DTO, and the answers are written here in one go: what a
 * dispatcher understands is fixed, so interceptors, pipes and filters of the application see nothing to change. Guards apply as anywhere.
 */
abstract class DeliveriesController {
  private readonly logger = new Logger('Consumer');

  constructor(
    @Inject(ConsumerEndpoint) private readonly endpoint: ConsumerEndpoint,
    @Inject(DeliveryBodyReader) private readonly bodies: DeliveryBodyReader,
  ) {}

  @Post()
  deliver(@Req() request: PlatformRequest, @Res() response: PlatformResponse): Promise<void> {
    return this.serve(request, response, false);
  }

  @Post(BATCH_PATH)
  deliverBatch(@Req() request: PlatformRequest, @Res() response: PlatformResponse): Promise<void> {
    return this.serve(request, response, true);
  }

  private async serve(platformRequest: PlatformRequest, platformResponse: PlatformResponse, isBatch: boolean): Promise<void> {
    const [request, response] = [requestOf(platformRequest), responseOf(platformResponse)];
    const body = await this.bodies.bodyOf(request, response, isBatch ? this.bodies.batch : this.bodies.single);
    if (body === undefined) return;
    const client = new ClientSignal(request, response);
    try {
      const given = await this.endpoint.deliver({ isBatch, headers: request.headers, body: body.bytes, signal: client.signal });
      answer(response, this.endpoint.isStopping ? { ...given, headers: { ...given.headers, connection: 'close' } } : given);
    } catch (error) {
      this.logger.error('a delivery failed unexpectedly', (error as Error | undefined)?.stack ?? String(error));
      answer(response, refusalAnswer({ status: 500, reason: 'the consumer failed unexpectedly; its log says how' }));
    } finally {
      client.end();
      body.giveBack();
    }
  }
}

/** The controller for a path, as Nest wants it: a class with the path and the guards on it. @param path without a slash in front */
export function deliveriesControllerOf(path: string, guards: readonly (CanActivate | Type<CanActivate>)[]): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(...guards)
  class ConsumerController extends DeliveriesController {}
  return ConsumerController;
}
