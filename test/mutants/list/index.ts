import type { Mutant } from '../mutant.js';
import { APPEND_MUTANTS } from './append.mutants.js';
import { CHECKPOINT_MUTANTS } from './checkpoint.mutants.js';
import { DELIVERY_MUTANTS } from './delivery.mutants.js';
import { PUBLISH_MUTANTS } from './publish.mutants.js';
import { RECOVERY_MUTANTS } from './recovery.mutants.js';
import { RESERVE_MUTANTS } from './reserve.mutants.js';
import { ROTATION_MUTANTS } from './rotation.mutants.js';
import { SYNCED_MUTANTS } from './synced.mutants.js';
import { TOPIC_MUTANTS } from './topic.mutants.js';

/*
 * Not in the list, as no crash shows them: another step covers what they leave out. The unit specs hold them.
 *
 * - cutting back does not sync the segment: what is left behind its end is in no index, the next append syncs the file, and a start cuts it
 *   (file-topic-log.spec.ts, "that failed is cut back in the index first, each file synced"); without the sync of the index it is seen;
 * - a start does not sync the last segment: what has a position was synced before the position was written
 *   (recovery.spec.ts, "cuts the index before the segment, each synced before the next, and syncs all it relies on before it serves");
 * - a filled index is not synced: until the next append syncs the file, a start finds the same holes and the same proof of what stood there.
 *   No unit spec holds this one;
 * - a new checkpoint does not sync the directory of the topic: the making of the topic has (checkpoint.store.spec.ts, as below); without both it
 *   is seen;
 * - a topic is made without the directory of its checkpoints: the first checkpoint makes it, and a topic without messages is made again by its
 *   first one (checkpoint.store.spec.ts, "is durable by name up to the topic, where not even its directory was there").
 */
export const MUTANTS: readonly Mutant[] = [
  ...APPEND_MUTANTS,
  ...ROTATION_MUTANTS,
  ...TOPIC_MUTANTS,
  ...RECOVERY_MUTANTS,
  ...SYNCED_MUTANTS,
  ...RESERVE_MUTANTS,
  ...CHECKPOINT_MUTANTS,
  ...PUBLISH_MUTANTS,
  ...DELIVERY_MUTANTS,
];
