/*
 * Settings come as trees of plain objects, lists and values: from YAML with keys in kebab case, from code in camel case. Here they are
 * copied into one spelling, so that the same classes check both, and into plain data, so that no key of a file meets a prototype and no
 * getter, function or circle of an options object meets the validation.
 */

/** The way from the root to a value: property names and list indexes. */
export type TreePath = readonly (string | number)[];

/** How keys are written where the settings were given. */
export interface Spelling {
  /** @returns the property name; a key that cannot be a setting comes back in quotes, which no property has */
  readonly property: (key: string) => string;
  /** The way back. */
  readonly key: (property: string) => string;
}

/** `max-bytes`, as in files. */
export const kebabCase: Spelling = {
  property: (key) => (/^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$/.test(key) ? safe(camelOf(key), key) : JSON.stringify(key)),
  key: (property) => (property.startsWith('"') ? property : kebabOf(property)),
};

/** `maxBytes`, as in code. */
export const camelCase: Spelling = {
  property: (key) => (/^[a-z][A-Za-z0-9]*$/.test(key) ? safe(key, key) : JSON.stringify(key)),
  key: (property) => property,
};

const MAX_SHOWN_LENGTH = 100;

/** Copies what was given, with property names for keys. What is undefined is left out, as if it were not there. */
export function treeOf(given: unknown, spelling: Spelling, ancestors: readonly object[] = []): unknown {
  // A symbol passes no rule of any setting, so what cannot be copied is refused where it stands, and shown by the symbol's description.
  if (typeof given === 'function') return Symbol('a function');
  if (typeof given !== 'object' || given === null) return given;
  if (ancestors.includes(given)) return Symbol('a value that contains itself');
  const within = [...ancestors, given];
  if (Array.isArray(given)) return given.map((item) => treeOf(item, spelling, within));
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.map(([key, value]) => [spelling.property(key), treeOf(value, spelling, within)]));
}

/** Puts a value at a path and makes the groups on the way. Where something else than a group is in the way, it stays: it is a problem of its own. */
export function put(tree: object, path: TreePath, value: unknown): void {
  const [property, ...rest] = path;
  if (property === undefined) return;
  const group = tree as Record<string | number, unknown>;
  if (rest.length === 0) {
    group[property] = value;
    return;
  }
  group[property] ??= {};
  const child = group[property];
  if (typeof child === 'object' && child !== null && !Array.isArray(child)) put(child, rest, value);
}

/** The property path of a row of the table: `mmmq.broker.segment.max-bytes` is `mmmq`, `broker`, `segment`, `maxBytes`. */
export function propertyPath(setting: string): TreePath {
  return setting.split('.').map(camelOf);
}

/** The path as the table spells it, with `[]` for an index: `mmmq.dispatchers[].max-resends`. */
export function settingPath(path: TreePath): string {
  return keyOf(path, kebabCase).replace(/\[\d+\]/g, '[]');
}

/** The path as its owner spells it: `mmmq.dispatchers[0].max-resends`. */
export function keyOf(path: TreePath, spelling: Spelling): string {
  return path.reduce<string>((key, part) => {
    if (typeof part === 'number') return `${key}[${part}]`;
    return `${key}${key === '' ? '' : '.'}${spelling.key(part)}`;
  }, '');
}

/** What stands at the path, or undefined. */
export function valueAt(tree: unknown, path: TreePath): unknown {
  return path.reduce(
    (node, part) => (typeof node === 'object' && node !== null ? (node as Record<string, unknown>)[part] : undefined),
    tree,
  );
}

/** A value as text for a message, of bounded length, with the keys of its owner. */
export function shown(value: unknown, spelling: Spelling): string {
  const own = treeOf(value, { property: spelling.key, key: spelling.property });
  const full = typeof own === 'string' || typeof own === 'object' ? JSON.stringify(own, plain) : plainText(own);
  return full.length > MAX_SHOWN_LENGTH ? `${full.slice(0, MAX_SHOWN_LENGTH)}…` : full;
}

function plain(_key: string, value: unknown): unknown {
  return typeof value === 'symbol' || typeof value === 'bigint' ? plainText(value) : value;
}

function plainText(value: unknown): string {
  return typeof value === 'symbol' ? (value.description ?? '') : String(value);
}

/** A property that every object inherits (`constructor`, `toString`) would be taken for that. */
function safe(property: string, key: string): string {
  return property in {} ? JSON.stringify(key) : property;
}

function camelOf(kebab: string): string {
  return kebab.replace(/-([a-z])/g, (_hyphen, letter: string) => letter.toUpperCase());
}

function kebabOf(camel: string): string {
  return camel.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
