import { Module } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { BrokerModule } from './broker/index.js';
import { DispatcherModule } from './dispatcher/index.js';
import { HealthModule } from './operations/health/index.js';
import { settingsConfiguration, type Settings } from './settings/index.js';

const settings = { imports: [ConfigModule.forFeature(settingsConfiguration)], inject: [settingsConfiguration.KEY] };

/** The broker on its own: what `config/mmmq.yaml` and the environment say, as modules. */
@Module({
  imports: [
    ConfigModule.forRoot({ load: [settingsConfiguration], ignoreEnvFile: true }),
    BrokerModule.forRootAsync({ ...settings, useFactory: ({ broker }: Settings) => broker }),
    DispatcherModule.forRootAsync({ ...settings, useFactory: ({ dispatchers }: Settings) => dispatchers }),
    HealthModule,
  ],
})
export class AppModule {}
