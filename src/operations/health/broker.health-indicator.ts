import { Inject, Injectable } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { TopicQueueService, TopicQueueServiceState } from '../../topic-queue/index.js';

/** Whether publishes should be sent here: the broker serves, and no topic refuses appends. */
@Injectable()
export class BrokerHealthIndicator {
  constructor(
    @Inject(HealthIndicatorService) private readonly indicators: HealthIndicatorService,
    @Inject(TopicQueueService) private readonly topicQueues: TopicQueueService,
  ) {}

  /** `{"broker":{"status":"down","state":"serving","problems":[{"topic":"order.created","reason":"…"}]}}` */
  async check(): Promise<HealthIndicatorResult<'broker'>> {
    const indicator = this.indicators.check('broker');
    const { state } = this.topicQueues;
    if (state !== TopicQueueServiceState.SERVING) return indicator.down({ state });
    const problems = await this.topicQueues.problems();
    return problems.length > 0 ? indicator.down({ state, problems }) : indicator.up({ state });
  }
}
