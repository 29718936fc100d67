/** The Nest token of the application's {@link BrokerSettings}. */
export const BROKER_SETTINGS = Symbol('mmmq.broker-settings');
