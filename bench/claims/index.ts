import type { Claim } from '../harness/claim.js';
import { backlog } from './backlog.claim.js';
import { delivery } from './delivery.claim.js';
import { diskQueue } from './disk-queue.claim.js';
import { latency } from './latency.claim.js';
import { publish } from './publish.claim.js';
import { stored } from './stored.claim.js';
import { topics } from './topics.claim.js';

/** In the order in which they are measured. */
export const CLAIMS: readonly Claim[] = [latency, publish, delivery, backlog, stored, topics, diskQueue];
