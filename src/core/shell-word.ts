const NEEDS_NO_QUOTES = /^[A-Za-z0-9_./:@%+=,-]+$/;

/** The text as one word of a shell's command line, quoted where it has to be. */
export function shellWord(text: string): string {
  return NEEDS_NO_QUOTES.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
