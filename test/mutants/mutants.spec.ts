import { describe, expect, it } from '@jest/globals';
import { MUTANTS } from './list/index.js';
import { edited, mutatedFiles } from './mutant.js';

describe('The list of mutants', () => {
  it('fits the code: every text that a mutant replaces stands where it says, once', () => {
    for (const mutant of MUTANTS) expect(mutatedFiles(mutant, process.cwd()).size).toBeGreaterThan(0);
  });

  it('names each of them differently', () => {
    const names = MUTANTS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('is refused where a text is missing, stands twice, or is replaced by itself', () => {
    const edit = { file: 'a.ts', find: 'b', replace: '$&c' };
    expect(edited('abd', edit)).toBe('a$&cd');
    expect(() => edited('acd', edit)).toThrow('a.ts has this 0 times');
    expect(() => edited('abb', edit)).toThrow('a.ts has this 2 times');
    expect(() => edited('ab', { ...edit, replace: 'b' })).toThrow('is not changed');
    expect(() => mutatedFiles({ name: 'gone', edits: [{ ...edit, file: 'package.json', find: 'no such text' }] }, process.cwd())).toThrow(
      'the mutant "gone" no longer fits the code: package.json has this 0 times',
    );
  });
});
