/** A segment's two files carry its first offset, written in as many digits as the largest int64 has. */
const OFFSET_DIGITS = 19;
const NAME = /^(\d{19})\.(mmm|idx)$/;

/** `.mmm`: the messages. */
export function segmentFileName(baseOffset: number): string {
  return `${String(baseOffset).padStart(OFFSET_DIGITS, '0')}.mmm`;
}

/** `.idx`: the byte position of each message in the `.mmm` file of the same number. */
export function offsetIndexFileName(baseOffset: number): string {
  return `${String(baseOffset).padStart(OFFSET_DIGITS, '0')}.idx`;
}

/** @returns undefined for a name that is none of a segment's */
export function parseSegmentName(name: string): { baseOffset: number; kind: 'segment' | 'offset-index' } | undefined {
  const match = NAME.exec(name);
  if (match === null) return undefined;
  return { baseOffset: Number(match[1]), kind: match[2] === 'mmm' ? 'segment' : 'offset-index' };
}
