export type { ConsumerClient, ConsumerReply, ConsumerRequest } from './consumer-client.port.js';
export { HttpServiceConsumerClient } from './http-service.consumer-client.js';
export { UndiciConsumerClient } from './undici.consumer-client.js';
