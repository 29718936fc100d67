/** What a pattern has at one place. */
type Part =
  | { readonly kind: 'character'; readonly character: string }
  | { readonly kind: 'any-character' }
  /** Any number of characters, also none. */
  | { readonly kind: 'any-characters' }
  /** The end of a word. */
  | { readonly kind: 'dot' }
  /** Any number of words, also none: at the beginning of one. */
  | { readonly kind: 'any-words' }
  /** The same, inside a word. Stands behind it always. */
  | { readonly kind: 'any-word' };

const DOT = '.';

/**
 * A topic pattern as a machine that reads a topic character by character, with a dot behind each word, also the last. A state is a place in the
 * pattern. Plain strings go in: what makes them patterns is checked by `TopicPattern`.
 */
export class PatternAutomaton {
  private readonly parts: readonly Part[];
  /** Where it begins. */
  readonly start: readonly number[];

  constructor(readonly pattern: string) {
    this.parts = pattern.split(DOT).flatMap(partsOfWord);
    this.start = this.withSkips([0]);
  }

  /** The characters that it looks for. All others are the same to it. */
  get characters(): readonly string[] {
    return this.parts.flatMap((part) => (part.kind === 'character' ? [part.character] : []));
  }

  /** Where it may be behind one more character; empty where that leads nowhere. In order, each place once. */
  step(places: readonly number[], character: string): readonly number[] {
    return this.withSkips(
      places.flatMap((place) => {
        const next = this.next(place, character);
        return next === undefined ? [] : [next];
      }),
    );
  }

  /** Whether a topic that led here is matched. */
  accepts(places: readonly number[]): boolean {
    return places.includes(this.parts.length);
  }

  private next(place: number, character: string): number | undefined {
    const isDot = character === DOT;
    const part = this.parts[place];
    switch (part?.kind) {
      case 'character':
        return character === part.character ? place + 1 : undefined;
      case 'any-character':
        return isDot ? undefined : place + 1;
      case 'any-characters':
        return isDot ? undefined : place;
      case 'dot':
        return isDot ? place + 1 : undefined;
      case 'any-words':
        return isDot ? undefined : place + 1;
      case 'any-word':
        return isDot ? place - 1 : place;
      default:
        return undefined;
    }
  }

  /** What matches nothing as well may be passed over. */
  private withSkips(places: readonly number[]): readonly number[] {
    const all = new Set<number>();
    for (const place of places) {
      for (let next: number | undefined = place; next !== undefined && !all.has(next); next = this.behindSkip(next)) all.add(next);
    }
    return [...all].sort((a, b) => a - b);
  }

  private behindSkip(place: number): number | undefined {
    const kind = this.parts[place]?.kind;
    if (kind === 'any-characters') return place + 1;
    return kind === 'any-words' ? place + 2 : undefined;
  }
}

function partsOfWord(word: string): readonly Part[] {
  if (word === '**') return [{ kind: 'any-words' }, { kind: 'any-word' }];
  // A word has one character at least.
  const text = word === '*' ? '?*' : word;
  return [...text].map(partOf).concat({ kind: 'dot' });
}

function partOf(character: string): Part {
  if (character === '*') return { kind: 'any-characters' };
  return character === '?' ? { kind: 'any-character' } : { kind: 'character', character };
}
