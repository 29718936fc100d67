export type { RequestHandler } from './direct-route.js';
export { BrokerExpressAdapter } from './broker-express.adapter.js';
