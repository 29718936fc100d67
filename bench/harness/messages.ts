/** The topics of all workloads: `bench.0`, `bench.1`, … */
export function topicOf(index: number): string {
  return `bench.${index}`;
}

/** What a producer sends: a JSON document of exactly so many bytes, with members of several kinds and a text that fills it up. */
export function messageOf(topic: string, bytes: number): string {
  const withText = (text: string): string =>
    JSON.stringify({ topic, content: { id: 41, customer: 'customer-3', amount: 12.5, isPaid: true, text } });
  return withText('x'.repeat(bytes - withText('').length));
}
