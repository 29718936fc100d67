import { DEAD_LETTER_PREFIX, InvalidValueError } from '../core/index.js';
import { PatternAutomaton } from './pattern-automaton.js';

/** Stand for all characters that neither pattern looks for. None of them is in the prefix of dead letters. */
const OTHER_CHARACTERS = 'abcefghijkmnoprstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-';

/** So many steps a comparison may take. Patterns that people write take some hundreds; only such as `*a???????????????` and its kind take more. */
const MAX_STEPS = 50_000;

/** A topic in the making: its beginning, and where it leads. */
interface Beginning<Place> {
  readonly text: string;
  readonly place: Place;
}

/**
 * A topic that both patterns match, as short as can be; undefined where there is none. Exact, but for the length that a topic may have.
 * @param one and other are patterns
 */
export function commonTopic(one: string, other: string): string | undefined {
  // A look at the beginnings is enough for most of the patterns of an application, which are all compared with each other.
  const [fixedOne, fixedOther] = [fixedBeginningOf(one), fixedBeginningOf(other)];
  if (!fixedOne.startsWith(fixedOther) && !fixedOther.startsWith(fixedOne)) return undefined;
  const [a, b] = [new PatternAutomaton(one), new PatternAutomaton(other)];
  // A pattern that does not begin with the prefix of dead letters matches none of them.
  const isKeptOut = ![one, other].every((pattern) => pattern.startsWith(DEAD_LETTER_PREFIX));
  type Place = { readonly inA: number; readonly inB: number; readonly read: number };
  const pairs = (allA: readonly number[], allB: readonly number[], read: number): Place[] =>
    allA.flatMap((inA) => allB.map((inB) => ({ inA, inB, read })));
  return shortestTopic<Place>(
    pairs(a.start, b.start, 0),
    charactersOf(a, b),
    ({ inA, inB, read }, character) => {
      const readThen = isKeptOut ? readOfPrefix(read, character) : 0;
      return readThen === undefined ? [] : pairs(a.step([inA], character), b.step([inB], character), readThen);
    },
    ({ inA, inB }) => a.accepts([inA]) && b.accepts([inB]),
    ({ inA, inB, read }) => `${inA} ${inB} ${read}`,
  );
}

/**
 * Whether one pattern is a special case of the other: whatever the words of a topic are, where `one` fits `other` does. Equal ones, however they are
 * spelled, are special cases of each other. That dead letters are kept from most patterns is not looked at: `dlq.**` is a special case of `**`.
 * @throws {InvalidValueError} for patterns that are too intricate to be compared
 */
export function isSpecialCase(one: string, other: string): boolean {
  return topicBeside(one, other) === undefined;
}

/** Words of a topic that fit one pattern and not the other, as short as can be; undefined where there are none. */
export function topicBeside(one: string, other: string): string | undefined {
  const [a, b] = [new PatternAutomaton(one), new PatternAutomaton(other)];
  type Place = { readonly inA: number; readonly inB: readonly number[] };
  return shortestTopic<Place>(
    a.start.map((inA) => ({ inA, inB: b.start })),
    charactersOf(a, b),
    ({ inA, inB }, character) => {
      const inBThen = b.step(inB, character);
      return a.step([inA], character).map((inAThen) => ({ inA: inAThen, inB: inBThen }));
    },
    ({ inA, inB }) => a.accepts([inA]) && !b.accepts(inB),
    ({ inA, inB }) => `${inA}:${inB.join()}`,
  );
}

/** What every topic begins with that the pattern matches. */
function fixedBeginningOf(pattern: string): string {
  const [fixed = ''] = pattern.split(/[*?]/, 1);
  // `news.**` matches `news` as well.
  return fixed.endsWith('.') ? fixed.slice(0, -1) : fixed;
}

/** Goes through all beginnings of topics, the short ones first, each place once. The empty topic is none. */
function shortestTopic<Place>(
  starts: readonly Place[],
  characters: readonly string[],
  step: (place: Place, character: string) => readonly Place[],
  isFound: (place: Place) => boolean,
  keyOf: (place: Place) => string,
): string | undefined {
  const seen = new Set(starts.map(keyOf));
  const beginnings: Beginning<Place>[] = starts.map((place) => ({ text: '', place }));
  for (const { text, place } of beginnings) {
    for (const character of characters) {
      for (const next of step(place, character)) {
        // Each word has its dot behind it, the last one too.
        if (isFound(next)) return text;
        const key = keyOf(next);
        if (seen.has(key)) continue;
        if (seen.size >= MAX_STEPS)
          throw new InvalidValueError('pattern', text, 'the patterns are too intricate to be compared: use fewer wildcards');
        seen.add(key);
        beginnings.push({ text: text + character, place: next });
      }
    }
  }
  return undefined;
}

function charactersOf(a: PatternAutomaton, b: PatternAutomaton): readonly string[] {
  const sought = new Set([...a.characters, ...b.characters]);
  const other = [...OTHER_CHARACTERS].find((character) => !sought.has(character));
  return [...sought, ...(other === undefined ? [] : [other]), '.'];
}

/**
 * Follows a topic through the prefix of dead letters.
 * @param read how many characters of the prefix it has so far; -1 where it has left it
 * @returns the same behind one more character; undefined where the topic has more than the prefix, and is a dead letter's
 */
function readOfPrefix(read: number, character: string): number | undefined {
  if (read === DEAD_LETTER_PREFIX.length) return undefined;
  return read >= 0 && DEAD_LETTER_PREFIX[read] === character ? read + 1 : -1;
}
