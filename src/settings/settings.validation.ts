import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { InvalidSettingsError, type SettingProblem } from './invalid-settings.error.js';
import { keyOf, propertyPath, settingPath, shown, valueAt, type Spelling, type TreePath } from './settings-tree.js';
import { SETTING_ROWS } from './settings.table.js';
import { SettingsDocument, type BrokerSettings, type DispatcherSettings } from './settings.js';

/** How the giver of the settings finds a value again. */
export interface Naming {
  readonly spelling: Spelling;
  /** How many names at the beginning of each path the giver does not write. */
  readonly hiddenDepth: number;
  /** Where the value at the path came from. */
  origin(path: TreePath): string;
}

/**
 * Checks a tree of settings against the classes and their rules, single settings by class-validator, and finds every problem.
 * What class-validator reports is only a list of broken constraints; from it come problems with key, value, rule and origin.
 */
export class SettingsValidation {
  /** With every default filled in; to be used only when there are no problems. */
  readonly document: SettingsDocument;
  readonly problems: readonly SettingProblem[];

  /** @param tree as `treeOf` makes it */
  constructor(
    private readonly tree: object,
    private readonly naming: Naming,
  ) {
    this.document = plainToInstance(SettingsDocument, tree);
    const errors = validateSync(this.document, { whitelist: true, forbidNonWhitelisted: true, validationError: { target: false } });
    this.problems = [...errors.flatMap((error) => this.problemsOf(error, [])), ...this.crossProblems(this.document)];
  }

  private problemsOf(error: ValidationError, group: TreePath): SettingProblem[] {
    const path = [...group, error.property];
    if (error.constraints?.['whitelistValidation'] !== undefined) {
      return [this.given(path, `is not a setting; here are: ${this.knownKeys(group).join(', ')}`)];
    }
    const itemProblem = itemProblemAt(path);
    const items = valueAt(this.tree, path);
    if (itemProblem !== undefined && Array.isArray(items)) return this.listProblems(error, path, items, itemProblem);
    const broken = brokenRule(error);
    return broken === undefined ? this.childProblems(error, path) : [this.given(path, broken)];
  }

  /** class-validator blames the list for any of its items; here each item gets its own problem. */
  private listProblems(error: ValidationError, path: TreePath, items: readonly unknown[], itemProblem: ItemProblem): SettingProblem[] {
    const broken = brokenRule(error);
    const own = items.flatMap((item, index) => {
      const rule = itemProblem(item);
      return rule === undefined ? [] : [this.given([...path, index], rule)];
    });
    if (own.length === 0 && broken !== undefined) own.push(this.given(path, broken));
    const groups = (error.children ?? []).filter((child) => groupProblem(child.value) === undefined);
    return [...own, ...groups.flatMap((child) => this.childProblems(child, [...path, Number(child.property)]))];
  }

  private childProblems(error: ValidationError, path: TreePath): SettingProblem[] {
    return (error.children ?? []).flatMap((child) => this.problemsOf(child, path));
  }

  /** The rules that need more than one value. Any value may still be missing or of another type: that is a problem of its own. */
  private crossProblems(document: Loose<SettingsDocument>): SettingProblem[] {
    const dispatchers = document.mmmq?.dispatchers;
    const list = Array.isArray(dispatchers) ? (dispatchers as readonly (Loose<DispatcherSettings> | null)[]) : [];
    return [
      ...this.pendingProblems(document.mmmq?.broker),
      ...list.flatMap((dispatcher, index) => this.backoffProblems(dispatcher, index)),
      ...this.nameProblems(list),
    ];
  }

  private pendingProblems(broker: Loose<BrokerSettings> | undefined): SettingProblem[] {
    const pending = { path: ['mmmq', 'broker', 'pending', 'maxBytes'], value: broker?.pending?.maxBytes };
    const message = { path: ['mmmq', 'broker', 'message', 'maxBytes'], value: broker?.message?.maxBytes };
    const batch = { path: ['mmmq', 'broker', 'batch', 'maxBytes'], value: broker?.batch?.maxBytes };
    return [...this.atLeast(pending, message), ...this.atLeast(pending, batch)];
  }

  private backoffProblems(dispatcher: Loose<DispatcherSettings> | null, index: number): SettingProblem[] {
    const backoff = ['mmmq', 'dispatchers', index, 'backoff'];
    const max = { path: [...backoff, 'maxMs'], value: dispatcher?.backoff?.maxMs };
    const initial = { path: [...backoff, 'initialMs'], value: dispatcher?.backoff?.initialMs };
    return this.atLeast(max, initial);
  }

  private atLeast(larger: { path: TreePath; value: unknown }, smaller: { path: TreePath; value: unknown }): SettingProblem[] {
    if (typeof larger.value !== 'number' || typeof smaller.value !== 'number' || larger.value >= smaller.value) return [];
    return [this.problem(larger.path, larger.value, `must be at least ${this.nameOf(smaller.path)}, which is ${smaller.value}`)];
  }

  /** On a file system that ignores case, two such dispatchers would share one checkpoint file. */
  private nameProblems(dispatchers: readonly (Loose<DispatcherSettings> | null)[]): SettingProblem[] {
    const firstIndexes = new Map<string, number>();
    return dispatchers.flatMap((dispatcher, index) => {
      const name: unknown = dispatcher?.name;
      if (typeof name !== 'string') return [];
      const first = firstIndexes.get(name.toLowerCase());
      if (first === undefined) {
        firstIndexes.set(name.toLowerCase(), index);
        return [];
      }
      const other = this.nameOf(['mmmq', 'dispatchers', first, 'name']);
      return [this.given(['mmmq', 'dispatchers', index, 'name'], `must differ from ${other}, also when case is ignored`)];
    });
  }

  /** A problem of the value as it was given, without the defaults that the classes filled in. */
  private given(path: TreePath, rule: string): SettingProblem {
    return this.problem(path, valueAt(this.tree, path), rule);
  }

  private problem(path: TreePath, value: unknown, rule: string): SettingProblem {
    const key = this.nameOf(path);
    const origin = this.naming.origin(path);
    if (value === undefined) return { key, rule: `is missing; it ${rule}`, origin };
    return { key, value: shown(value, this.naming.spelling), rule, origin };
  }

  private nameOf(path: TreePath): string {
    return keyOf(path.slice(this.naming.hiddenDepth), this.naming.spelling) || 'options';
  }

  private knownKeys(group: TreePath): string[] {
    const prefix = group.length === 0 ? '' : `${settingPath(group)}.`;
    const below = [...SETTING_ROWS.keys()].filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
    const keys = below.map((path) => path.split(/[.[]/, 1)[0] ?? '');
    return [...new Set(keys.map((key) => keyOf(propertyPath(key), this.naming.spelling)))];
  }
}

/** @throws {InvalidSettingsError} when there is a problem */
export function assertValid(problems: readonly SettingProblem[]): void {
  if (problems.length > 0) throw new InvalidSettingsError(problems);
}

type ItemProblem = (item: unknown) => string | undefined;

/** What the items of the list at the path must be; undefined where no list belongs. */
function itemProblemAt(path: TreePath): ItemProblem | undefined {
  const list = settingPath(path);
  const holdsGroups = [...SETTING_ROWS.keys()].some((row) => row.startsWith(`${list}[]`));
  return holdsGroups ? groupProblem : SETTING_ROWS.get(list)?.rule.itemProblem;
}

function groupProblem(item: unknown): string | undefined {
  return typeof item === 'object' && item !== null && !Array.isArray(item) ? undefined : 'must be a group of settings';
}

/** The first rule that a value breaks; the rules behind it take that one for granted. */
function brokenRule(error: ValidationError): string | undefined {
  return Object.values(error.constraints ?? {})[0];
}

/** Settings before it is known that they are right: anything may be missing. */
type Loose<T> = { readonly [K in keyof T]?: T[K] extends readonly unknown[] ? unknown : T[K] extends object ? Loose<T[K]> : unknown };
