export { checksumAt, continuedChecksum, encodeEntries, entryBytesAt, payloadAt } from './entry.codec.js';
export { LogUntrustedError } from './log-untrusted.error.js';
export { INDEX_RECORD_BYTES, OffsetIndexStore } from './offset-index.store.js';
export { SegmentChain } from './segment-chain.js';
export { offsetIndexFileName, parseSegmentName, segmentFileName } from './segment-name.js';
export { SegmentStore } from './segment.store.js';
export type { SegmentExtent, SegmentStores } from './segment.js';
