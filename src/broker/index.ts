export { BrokerModule, type BrokerModuleAsyncOptions } from './broker.module.js';
export { MessagesController } from './messages.controller.js';
