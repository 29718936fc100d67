export type { ProducerTransport, TransportAnswer, TransportRequest } from './producer-transport.port.js';
export { TransportError } from './transport.error.js';
export { UndiciTransport } from './undici.transport.js';
