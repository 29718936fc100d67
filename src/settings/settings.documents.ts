import { stringify } from 'yaml';
import { CONFIG_FILE_VARIABLE, DEFAULT_CONFIG_FILE, SETTING_ROWS } from './settings.table.js';

/*
 * The two files that show a user every setting, rendered from the table. They are checked in, and a spec compares them with this.
 */

type Row = typeof SETTING_ROWS extends ReadonlyMap<string, infer R> ? R : never;

const SETTINGS_FILE_HEAD = `# The settings of the mmmq broker, each with its default. A line that is left out has the same effect.
# The environment variable that is named with a setting wins over this file; a .env file in the working directory is read as well.
# ${CONFIG_FILE_VARIABLE} names another file than this one.
`;

const DISPATCHERS_HEAD = `
  # Who gets which messages. Every dispatcher has a name, a host and patterns; the rest are defaults. Remove the first "# " of each line; what is
  # a comment even then is left out by default.
`;

const ENV_EXAMPLE_HEAD = `# Copy to .env in the working directory, and remove the "# " in front of what shall differ. The real environment wins over this file.

# The settings file: a path, relative to the working directory; it must be there. Without it, ${DEFAULT_CONFIG_FILE} where there is one.
# ${CONFIG_FILE_VARIABLE}=${DEFAULT_CONFIG_FILE}
`;

/** The text of config/mmmq.yaml. The dispatchers are an example in comments, so that the file works without a consumer. */
export function renderSettingsFile(): string {
  const [dispatchers, scalars] = partition([...SETTING_ROWS], ([path]) => path.includes('[]'));
  const active = renderGroups(scalars).join('\n');
  const example = renderGroups(dispatchers)
    .slice(1) // "mmmq:", which stands above already
    .map((line) => line.replace(/^ {2}/, '  # '))
    .join('\n');
  return `${SETTINGS_FILE_HEAD}${active}\n${DISPATCHERS_HEAD}${example}\n`;
}

/** The text of .env.example: a variable for every setting that has one, commented out. */
export function renderEnvExample(): string {
  const variables = [...SETTING_ROWS.values()].filter((row) => row.variables.length > 0);
  return ENV_EXAMPLE_HEAD + variables.map((row) => `\n${envLines(row).join('\n')}\n`).join('');
}

function envLines(row: Row): string[] {
  return [...describe(row), `${row.variables[0]}=${row.default}`].map((line) => `# ${line}`);
}

function renderGroups(rows: readonly (readonly [string, Row])[]): string[] {
  const lines: string[] = [];
  let open: readonly string[] = [];
  for (const [path, row] of rows) {
    const keys = path.split('.');
    const key = keys.at(-1) ?? '';
    const groups = keys.slice(0, -1);
    const shared = groups.findIndex((group, depth) => group !== open[depth]);
    const itemBegins = shared >= 0 && groups.at(-1)?.endsWith('[]') === true;
    const own: string[] = [];
    for (const [depth, group] of groups.entries()) {
      if (shared >= 0 && depth >= shared) own.push(`${indent(groups.slice(0, depth))}${group.replace('[]', '')}:`);
    }
    open = groups;
    // The first key of an item stands behind its dash, and the comments above it in line with that.
    const margin = itemBegins ? indent(groups).slice(2) : indent(groups);
    own.push(...describe(row).map((comment) => `${margin}# ${comment}`));
    own.push(`${margin}${itemBegins ? '- ' : ''}${key}: ${inline(row.default ?? row.example)}`);
    lines.push(...(row.isLeftOut === true ? commentedOut(own, indent(groups.slice(0, -1))) : own));
  }
  return lines;
}

function commentedOut(lines: readonly string[], margin: string): string[] {
  return lines.map((line) => `${margin}# ${line.slice(margin.length)}`);
}

/** Two spaces for each group, and two more inside the items of a list. */
function indent(groups: readonly string[]): string {
  return groups.map((group) => (group.endsWith('[]') ? '    ' : '  ')).join('');
}

/** Two lines: what it does; what it must be and the variables that set it. */
function describe({ meaning, rule, variables }: Row): string[] {
  const setBy = variables.length > 0 ? ` Set by ${variables.join(', or else ')}.` : '';
  return [`${meaning}.`, `Must be ${rule.words}.${setBy}`];
}

function inline(value: unknown): string {
  return stringify(value, { collectionStyle: 'flow', flowCollectionPadding: false }).trimEnd();
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}
