/** What a worker is doing. */
export const WorkerState = {
  /** Every message that was there is behind the checkpoint. The next arrival starts it; nothing else does. */
  IDLE: 'idle',
  /** It reads, sends and commits, one message or batch after the other, or waits for its turn to send. */
  DRAINING: 'draining',
  /** It waits before it tries again what failed: a send, a commit, a read, a dead letter. */
  BACKING_OFF: 'backingOff',
  /** It ended for good. What is not committed is delivered after the next start. */
  STOPPED: 'stopped',
} as const;
export type WorkerState = (typeof WorkerState)[keyof typeof WorkerState];

const COMES_FROM: Readonly<Record<WorkerState, readonly WorkerState[]>> = {
  [WorkerState.IDLE]: [WorkerState.DRAINING],
  [WorkerState.DRAINING]: [WorkerState.IDLE, WorkerState.BACKING_OFF],
  [WorkerState.BACKING_OFF]: [WorkerState.DRAINING],
  [WorkerState.STOPPED]: [WorkerState.IDLE, WorkerState.DRAINING, WorkerState.BACKING_OFF],
};

/** @returns the state entered. A step that the table does not know is a fault of the program, and throws. */
export function transition(from: WorkerState, to: WorkerState): WorkerState {
  if (!COMES_FROM[to].includes(from)) throw new Error(`a worker cannot go from ${from} to ${to}`);
  return to;
}
