/**
 * Measures all subjects in turn, round after round, so that what disturbs the machine for a while does not hit one of them alone. Each round
 * begins with another subject.
 * @returns the results of each subject, one per round
 */
export async function interleaved<Subject extends string, Result>(
  rounds: number,
  title: string,
  subjects: Readonly<Record<Subject, () => Promise<Result>>>,
): Promise<Record<Subject, Result[]>> {
  const names = Object.keys(subjects) as Subject[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Result[]])) as Record<Subject, Result[]>;
  for (let round = 0; round < rounds; round += 1) {
    const first = round % names.length;
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      // Progress is no result: it goes where the tables do not.
      console.error(`  ${title}, round ${round + 1} of ${rounds}: ${name}`);
      results[name].push(await subjects[name]());
    }
  }
  return results;
}
