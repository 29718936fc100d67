/** One value per round, in the order of the rounds. */
export type Series = readonly number[];

/** The middle value, or the mean of the two in the middle. */
export function median(series: Series): number {
  const sorted = series.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The same figure of every round, or undefined where it could not be had. */
export function seriesOf<Result>(results: readonly Result[], figure: (result: Result) => number | undefined): Series | undefined {
  const values = results.map(figure).filter((value) => value !== undefined);
  return values.length === results.length ? values : undefined;
}

/**
 * A figure of one subject to the same of another, round by round, as what disturbed the machine in a round disturbed both. Undefined where it
 * could not be had of both.
 */
export function ratioOf<Result>(
  part: readonly Result[],
  whole: readonly Result[],
  figure: (result: Result) => number | undefined,
): Series | undefined {
  const parts = seriesOf(part, figure);
  const wholes = seriesOf(whole, figure);
  return wholes && parts?.map((value, round) => value / (wholes[round] ?? Number.NaN));
}
