import { powerCut, powerCutKey, type Change, type DiskState, type Fate } from './disk-state.js';
import { below, type Random } from './seeded-random.js';

export interface CrashImage {
  readonly name: string;
  readonly state: DiskState;
}

export interface CrashImageOptions {
  /** Where at most so many changes are pending, every combination of kept and lost ones is an image. */
  readonly combinationsUpTo: number;
  /** So many images with random parts. */
  readonly randomCount: number;
  /** Each sector is torn at its first byte, around its fourth and its eighth, in the middle and before its last; otherwise in the middle. */
  readonly isTornEverywhere: boolean;
}

/**
 * Every disk that a power cut at this moment is tried to leave, each combination once: none, all, every prefix, each change missing, each
 * alone, sizes and names without data, each sector torn (behind what came before it, among all, alone), random parts; and every combination
 * at all, where they are not too many.
 * @param isNew is asked before an image is made, with a text that is the same for images that are the same; what is not new is left out
 */
export function* crashImages(
  state: DiskState,
  random: Random,
  options: CrashImageOptions,
  isNew: (image: string) => boolean = () => true,
): Generator<CrashImage> {
  const { pending } = state;
  const keyOf = powerCutKey(state);
  const seen = new Set<string>();
  const image = function* (name: string, fateOf: (change: Change, index: number) => Fate): Generator<CrashImage> {
    const fates = pending.map(fateOf);
    const combination = fates.join();
    if (seen.has(combination)) return;
    seen.add(combination);
    if (isNew(keyOf(fates))) yield { name, state: powerCut(state, (_, index) => fates[index] ?? 'lost') };
  };
  const keepIf = (isKept: boolean): Fate => (isKept ? 'kept' : 'lost');
  yield* image('none', () => 'lost');
  yield* image('all', () => 'kept');
  yield* image('sizes and names without data', ({ kind }) => keepIf(kind !== 'data'));
  for (const [at, change] of pending.entries()) {
    yield* image(`the first ${at + 1}`, (_, index) => keepIf(index <= at));
    yield* image(`all but ${at}`, (_, index) => keepIf(index !== at));
    yield* image(`only ${at}`, (_, index) => keepIf(index === at));
    for (const written of tears(change, options.isTornEverywhere)) {
      yield* image(`the first ${at + 1}, the last torn after ${written}`, (_, index) => (index === at ? written : keepIf(index < at)));
      yield* image(`all, ${at} torn after ${written}`, (_, index) => (index === at ? written : 'kept'));
      yield* image(`${at} torn after ${written} alone`, (_, index) => (index === at ? written : 'lost'));
    }
  }
  if (pending.length < 2) return;
  if (pending.length <= options.combinationsUpTo) {
    for (let kept = 0; kept < 2 ** pending.length; kept += 1) {
      const isKept = (index: number): boolean => Math.floor(kept / 2 ** index) % 2 === 1;
      yield* image(`those of ${kept.toString(2)}`, (_, index) => keepIf(isKept(index)));
    }
  }
  for (let count = 0; count < options.randomCount; count += 1) {
    const share = random();
    yield* image(`random ${count}`, (change) => {
      if (change.kind === 'data' && random() < 0.1) return 1 + below(random, Math.max(1, change.to - change.from - 1));
      return keepIf(random() < share);
    });
  }
}

/** After how many of its new bytes a sector is torn. */
function tears(change: Change, everywhere: boolean): number[] {
  if (change.kind !== 'data') return [];
  const length = change.to - change.from;
  if (length < 2) return [1];
  const middle = Math.floor(length / 2);
  return everywhere ? [...new Set([1, 3, 4, 7, 8, 12, middle, length - 1])].filter((written) => written < length) : [middle];
}
