export { deadLetterOf, type DeadLetter } from './dead-letter.js';
export { JsonScanError, JsonScanner } from './json-scanner.js';
export { messageOf, type MessageDraft } from './message.maker.js';
export { Message } from './message.js';
export { splitBatch, type BatchFormat } from './publish-batch.reader.js';
export { PublishRefusedError, type RefusalStatus } from './publish-refused.error.js';
export { readPublish, type PublishHeaders } from './publish.reader.js';
export { readStored, type StoredMessage } from './stored-message.reader.js';
export { traceContextOf, type TraceContext } from './trace-context.js';
