export { BodyReader, JSON_TYPE, NDJSON_TYPE, type BodyReaderOptions, type BodyRule, type RequestBody } from './body.reader.js';
export { answer, refusalAnswer, type HttpAnswer, type Refusal } from './http-answer.js';
export { mediaTypeOf } from './media-type.js';
export { MAX_PENDING_HEADER_BYTES, MAX_PENDING_REQUESTS, PendingRequests } from './pending-requests.js';
export { requestOf, responseOf, type PlatformRequest, type PlatformResponse } from './platform.js';
export { RouteClaim } from './route.claim.js';
export { BATCH_PATH } from './route-paths.js';
