export { CorruptLogError, StartRefusedError } from './corrupt-log.error.js';
export { SegmentInspection } from './segment.inspection.js';
export { TopicInspection } from './topic.inspection.js';
export { TopicRepair } from './topic.repair.js';
export type { Repair, TopicFindings } from './topic-findings.js';
