import { describe, expect, it } from '@jest/globals';
import { transition, WorkerState } from './dispatcher-worker.state.js';

const { IDLE, DRAINING, BACKING_OFF, STOPPED } = WorkerState;

describe('the states of a worker', () => {
  const allowed: [WorkerState, WorkerState][] = [
    [IDLE, DRAINING],
    [IDLE, STOPPED],
    [DRAINING, IDLE],
    [DRAINING, BACKING_OFF],
    [DRAINING, STOPPED],
    [BACKING_OFF, DRAINING],
    [BACKING_OFF, STOPPED],
  ];
  const isAllowed = (from: WorkerState, to: WorkerState): boolean => allowed.some(([a, b]) => a === from && b === to);
  const all = Object.values(WorkerState).flatMap((from) => Object.values(WorkerState).map((to) => [from, to] as const));

  it.each(all.filter(([from, to]) => isAllowed(from, to)))('may go from %s to %s', (from, to) => {
    expect(transition(from, to)).toBe(to);
  });

  it.each(all.filter(([from, to]) => !isAllowed(from, to)))('never go from %s to %s', (from, to) => {
    expect(() => transition(from, to)).toThrow(`a worker cannot go from ${from} to ${to}`);
  });
});
