import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { BrokerHealthIndicator } from './broker.health-indicator.js';
import { HealthController } from './health.controller.js';

/** `GET /health/live` and `GET /health/ready`, for an application that imports `BrokerModule`. */
@Module({
  imports: [TerminusModule],
  controllers: [HealthController],
  providers: [BrokerHealthIndicator],
})
export class HealthModule {}
