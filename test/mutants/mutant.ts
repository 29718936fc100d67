import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A piece of the product's source that is replaced by another. */
export interface Edit {
  /** From the root of the repository. */
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly find: string;
  readonly replace: string;
}

/** The product with one promise broken. The tests are only worth something if they tell it from the product. */
export interface Mutant {
  /** What it does wrong; unique in the list. */
  readonly name: string;
  readonly edits: readonly Edit[];
  /** The workload where the sweep sees it soonest. It is run first, and all of them when it sees nothing. */
  readonly seenIn?: string;
  /** For what the crash test cannot see: the spec that must fail instead, and why it is not the crash test's business. */
  readonly insteadOfSweep?: { readonly spec: string; readonly because: string };
}

/** @returns the file with the edit made, @throws {Error} where the text does not stand there exactly once */
export function edited(source: string, { file, find, replace }: Edit): string {
  const count = source.split(find).length - 1;
  if (count !== 1) throw new Error(`${file} has this ${count} times, and must have it once:\n${find}`);
  if (find === replace) throw new Error(`${file} is not changed by this:\n${find}`);
  return source.replace(find, () => replace);
}

/** The files as a mutant has them, by path from the root of the repository. @throws {Error} where the mutant does not fit the code */
export function mutatedFiles({ name, edits }: Mutant, rootDir: string): Map<string, string> {
  const files = new Map<string, string>();
  try {
    for (const edit of edits) {
      files.set(edit.file, edited(files.get(edit.file) ?? readFileSync(join(rootDir, edit.file), 'utf8'), edit));
    }
  } catch (error) {
    throw new Error(`the mutant "${name}" no longer fits the code: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  return files;
}
