export { BrokerModule, type BrokerModuleAsyncOptions } from './broker.module.js';
export { MessagesController } from './messages.controller.js';
export { PublishBodyReader } from './publish-body.reader.js';
