export { CorruptLogError, StartRefusedError } from './corrupt-log.error.js';
export { SegmentInspection } from './segment.inspection.js';
export { TopicInspection } from './topic.inspection.js';
export { NOTHING_SYNCED, SYNCED_FILE_NAME, syncedLine, SyncedTopics, type RecordedTopic } from './synced-topics.js';
export { TopicRepair } from './topic.repair.js';
export { TopicSync } from './topic.sync.js';
export type { Repair, TopicFindings } from './topic-findings.js';
