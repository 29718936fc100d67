export { MAX_ANSWER_BYTES, type ConsumerClient, type ConsumerReply, type ConsumerRequest } from './consumer-client.port.js';
export { HttpServiceConsumerClient } from './http-service.consumer-client.js';
export { UndiciConsumerClient } from './undici.consumer-client.js';
