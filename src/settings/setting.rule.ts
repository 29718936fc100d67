import { IsArray, IsInt, IsString, Max, Min, ValidateBy } from 'class-validator';

/** What a setting must be: in words for people, and as the class-validator decorators that check it. */
export interface SettingRule {
  readonly kind: 'integer' | 'text' | 'list';
  /** Completes "must be …". */
  readonly words: string;
  readonly decorators: readonly PropertyDecorator[];
  /** For a list: what is wrong with one item of it. */
  readonly itemProblem?: (item: unknown) => string | undefined;
}

/** @param also a further condition that needs other settings to be checked */
export function wholeNumber(min: number, max: number, also: string = ''): SettingRule {
  const words = `a whole number from ${min} to ${max}${also}`;
  const message = `must be ${words}`;
  return { kind: 'integer', words, decorators: [IsInt({ message }), Min(min, { message }), Max(max, { message })] };
}

/** @param problem the part of the rule that a text breaks, or undefined */
export function text(words: string, problem: (value: string) => string | undefined): SettingRule {
  const check = (value: unknown): string | undefined => (typeof value === 'string' ? problem(value) : undefined);
  return { kind: 'text', words, decorators: [IsString({ message: `must be ${words}` }), Has(check)] };
}

/** A list of texts with at least one item. */
export function texts(words: string, problem: (value: string) => string | undefined): SettingRule {
  const message = `must be ${words}`;
  const itemProblem = (item: unknown): string | undefined => (typeof item === 'string' ? problem(item) : 'must be a text');
  const check = (value: unknown): string | undefined => {
    if (!Array.isArray(value)) return undefined;
    return value.length === 0 ? message : value.map(itemProblem).find((found) => found !== undefined);
  };
  return { kind: 'list', words, decorators: [IsArray({ message }), Has(check)], itemProblem };
}

/** Makes a decorator of a check that itself says what is wrong. */
function Has(check: (value: unknown) => string | undefined): PropertyDecorator {
  return ValidateBy({
    name: 'setting',
    validator: {
      validate: (value: unknown) => check(value) === undefined,
      defaultMessage: (validation) => check(validation?.value) ?? '',
    },
  });
}
