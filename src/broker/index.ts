export { BrokerModule, type BrokerModuleAsyncOptions } from './broker.module.js';
