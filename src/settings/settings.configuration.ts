import { registerAs } from '@nestjs/config';
import { loadSettings } from './settings.loader.js';
import type { Settings } from './settings.js';

/**
 * The settings of the process, for `ConfigModule.forRoot({ load: [settingsConfiguration], ignoreEnvFile: true })`; inject them with
 * `@Inject(settingsConfiguration.KEY)`. The .env file is read here, by the same rules as the rest, so ConfigModule leaves it alone.
 */
export const settingsConfiguration = registerAs('mmmq', (): Settings => loadSettings({ cwd: process.cwd(), env: process.env }));
