import { Module } from '@nestjs/common';
import { BrokerModule, DispatcherModule } from 'mmmq';
import { brokerSettings } from './broker.settings.js';

@Module({
  imports: [
    BrokerModule.forRoot({ storage: { rootDir: brokerSettings.dataDir } }),
    DispatcherModule.forRoot([
      {
        name: 'mailer',
        host: brokerSettings.mailerUrl,
        patterns: ['order.*'],
        // A mailer that comes back after a long night has its first order two seconds later, not a minute,
        backoff: { maxMs: 2000 },
        // and what has gathered meanwhile in few requests.
        batch: { maxMessages: 100 },
      },
    ]),
  ],
})
export class AppModule {}
