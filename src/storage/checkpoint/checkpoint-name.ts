import { dispatcherNameProblem } from '../../core/index.js';

export const CHECKPOINTS_DIRECTORY = 'checkpoints';
const SUFFIX = '.checkpoint';

export function checkpointFileName(dispatcher: string): string {
  return `${dispatcher}${SUFFIX}`;
}

/** @returns the dispatcher's name, or undefined for a name that is no checkpoint's */
export function parseCheckpointFileName(name: string): string | undefined {
  if (!name.endsWith(SUFFIX)) return undefined;
  const dispatcher = name.slice(0, -SUFFIX.length);
  return dispatcherNameProblem(dispatcher) === undefined ? dispatcher : undefined;
}
