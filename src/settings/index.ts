export { InvalidSettingsError, type SettingProblem } from './invalid-settings.error.js';
export { brokerSettings, dispatcherSettings, type BrokerOptions, type DispatcherDefinition } from './module-options.js';
export { settingsConfiguration } from './settings.configuration.js';
export { BROKER_SETTINGS } from './settings.token.js';
export { loadSettings, type SettingsSources } from './settings.loader.js';
export type { BackoffSettings, BrokerSettings, DispatcherSettings, ServerSettings, Settings } from './settings.js';
