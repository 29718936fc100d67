/** The text of a JSON string token that a scanner has found: the bytes from quote to quote, its escapes resolved. */
export function textOf(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start + 1, end - 1);
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}
