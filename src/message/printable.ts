const MAX_SHOWN_CHARACTERS = 64;
/** Control and format characters (line breaks, changes of direction), other white space, lone surrogates. */
const UNPRINTABLE = /[\p{C}\p{Z}]/gu;

/** A name that somebody sent, fit to be shown in a reason or a log line: 64 characters at most, nothing that is invisible or moves the line. */
export function printable(name: string): string {
  const shown = Array.from(name.slice(0, 2 * MAX_SHOWN_CHARACTERS))
    .slice(0, MAX_SHOWN_CHARACTERS)
    .join('');
  const text = shown.replace(UNPRINTABLE, (character) =>
    character === ' ' ? ' ' : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
  return shown.length < name.length ? `${text}…` : text;
}
