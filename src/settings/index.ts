export { InvalidSettingsError, type SettingProblem } from './invalid-settings.error.js';
export { brokerSettings, dispatcherSettings, type BrokerOptions, type DispatcherDefinition } from './module-options.js';
export { settingsConfiguration } from './settings.configuration.js';
export { BROKER_SETTINGS } from './settings.token.js';
export { loadSettings } from './settings.loader.js';
export type { BrokerSettings, DispatcherBatch, DispatcherSettings, Settings } from './settings.js';
