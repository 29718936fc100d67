export { deadLetterOf, MAX_ANSWER_BODY_BYTES, type DeadLetter } from './dead-letter.js';
export { JsonScanError, JsonScanner } from './json-scanner.js';
export { messageOf, type MessageDraft } from './message.maker.js';
export { Message } from './message.js';
export { PublishRefusedError, type RefusalStatus } from './publish-refused.error.js';
export { MAX_CONTENT_DEPTH, readPublish, type PublishHeaders } from './publish.reader.js';
export { readStored, type StoredMessage } from './stored-message.reader.js';
