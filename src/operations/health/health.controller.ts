import { Controller, Get, Inject, VERSION_NEUTRAL } from '@nestjs/common';
import { HealthCheck, type HealthCheckResult, HealthCheckService } from '@nestjs/terminus';
import { BrokerHealthIndicator } from './broker.health-indicator.js';

@Controller({ path: 'health', version: VERSION_NEUTRAL })
export class HealthController {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(BrokerHealthIndicator) private readonly broker: BrokerHealthIndicator,
  ) {}

  /** 200 as long as the process answers. Restart it when it does not. */
  @Get('live')
  @HealthCheck()
  live(): Promise<HealthCheckResult> {
    return this.health.check([]);
  }

  /** 200 when publishes should be sent here, otherwise 503 with the state of the broker, or each topic that refuses appends and why. */
  @Get('ready')
  @HealthCheck()
  ready(): Promise<HealthCheckResult> {
    return this.health.check([() => this.broker.check()]);
  }
}
