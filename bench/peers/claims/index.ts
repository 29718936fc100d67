import type { Claim } from '../../harness/claim.js';
import type { Subject } from '../servers/subject.js';
import { batch } from './batch.claim.js';
import { delivery } from './delivery.claim.js';
import { single } from './single.claim.js';

/** By the word on the command line, in the order in which they are measured. */
export const CLAIMS: Readonly<Record<string, (subjects: readonly Subject[]) => Claim>> = { single, batch, delivery };
