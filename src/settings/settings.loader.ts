import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import type { SettingProblem } from './invalid-settings.error.js';
import { CONFIG_FILE_VARIABLE, DEFAULT_CONFIG_FILE, SETTING_ROWS, VARIABLE_PREFIX } from './settings.table.js';
import { kebabCase, propertyPath, put, shown, type TreePath } from './settings-tree.js';
import { SettingsFile } from './settings-file.js';
import { readText } from './text-file.js';
import { assertValid, SettingsValidation } from './settings.validation.js';
import type { Settings } from './settings.js';

export interface SettingsSources {
  /** The working directory: where the files are looked for, and what relative paths are relative to. */
  readonly cwd: string;
  /** The environment, as `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface Variable {
  readonly value: string;
  readonly origin: string;
}
type Variables = ReadonlyMap<string, Variable>;

/**
 * Reads the settings of the application: defaults, over them the settings file (the one that `MMMQ_CONFIG_FILE` names, otherwise
 * `config/mmmq.yaml` where there is one), over it the environment, which a `.env` file completes.
 * @throws {InvalidSettingsError} with every problem of all of them
 */
export function loadSettings({ cwd, env }: SettingsSources): Settings {
  const problems: SettingProblem[] = [];
  const variables = readVariables(cwd, env, problems);
  const file = readFile(cwd, variables, problems);
  const tree = file?.tree ?? {};
  const overridden = override(tree, variables, problems);

  const origin = (path: TreePath): string => overridden.get(path.join('.')) ?? file?.origin(path) ?? 'default';
  const validation = new SettingsValidation(tree, { spelling: kebabCase, hiddenDepth: 0, origin });
  assertValid([...problems, ...validation.problems]);

  const { server, mmmq } = validation.document;
  const { broker, dispatchers } = mmmq;
  return {
    server,
    broker: { ...broker, storage: { ...broker.storage, rootDir: resolve(cwd, broker.storage.rootDir) } },
    dispatchers,
  };
}

/** The environment, and what `.env` adds to it. */
function readVariables(cwd: string, env: SettingsSources['env'], problems: SettingProblem[]): Variables {
  const variables = new Map<string, Variable>();
  const path = resolve(cwd, '.env');
  const { text, failure } = readText(path);
  if (failure !== undefined && !failure.missing) {
    problems.push({ key: '.env', rule: `must be a file of variables in UTF-8; it ${failure.reason}`, origin: path });
  }
  for (const [name, value] of Object.entries(parseEnv(text ?? ''))) {
    if (value !== undefined) variables.set(name, { value, origin: `${name} in ${path}` });
  }
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined) variables.set(name, { value, origin: `environment variable ${name}` });
  }
  problems.push(...unknownVariables(variables));
  return variables;
}

function unknownVariables(variables: Variables): SettingProblem[] {
  const ours = [...SETTING_ROWS.values()].flatMap((row) => row.variables).filter((name) => name.startsWith(VARIABLE_PREFIX));
  const known = [CONFIG_FILE_VARIABLE, ...ours];
  return [...variables]
    .filter(([name]) => name.startsWith(VARIABLE_PREFIX) && !known.includes(name))
    .map(([key, { value, origin }]) => ({
      key,
      value: shown(value, kebabCase),
      rule: `is no variable of mmmq; there are: ${known.join(', ')}`,
      origin,
    }));
}

function readFile(cwd: string, variables: Variables, problems: SettingProblem[]): SettingsFile | undefined {
  const named = variables.get(CONFIG_FILE_VARIABLE);
  if (named?.value === '') {
    problems.push({ key: CONFIG_FILE_VARIABLE, value: '""', rule: EMPTY_RULE, origin: named.origin });
    return undefined;
  }
  const path = resolve(cwd, named?.value ?? DEFAULT_CONFIG_FILE);
  const { text, failure } = readText(path);
  if (text !== undefined) {
    const file = new SettingsFile(path, text);
    problems.push(...file.problems);
    return file;
  }
  if (named !== undefined) {
    const rule = `must name a YAML file in UTF-8; ${path} ${failure.reason}`;
    problems.push({ key: CONFIG_FILE_VARIABLE, value: shown(named.value, kebabCase), rule, origin: named.origin });
  } else if (!failure.missing) {
    problems.push({ key: 'settings file', rule: `must be a YAML file in UTF-8; it ${failure.reason}`, origin: path });
  }
  return undefined;
}

/** Puts the variables over the file. @returns the origin of each value that now comes from a variable, by its path with dots */
function override(tree: object, variables: Variables, problems: SettingProblem[]): ReadonlyMap<string, string> {
  const origins = new Map<string, string>();
  for (const [setting, row] of SETTING_ROWS) {
    const variable = row.variables.map((name) => variables.get(name)).find((found) => found !== undefined);
    if (variable === undefined) continue;
    if (variable.value === '') {
      problems.push({ key: setting, value: '""', rule: EMPTY_RULE, origin: variable.origin });
      continue;
    }
    const path = propertyPath(setting);
    put(tree, path, row.rule.kind === 'integer' ? numberIn(variable.value) : variable.value);
    origins.set(path.join('.'), variable.origin);
  }
  return origins;
}

const EMPTY_RULE = 'must not be empty; unset the variable to do without it';

/** Plain decimal digits are a number; anything else stays the text that it is, and no whole number by its type. */
function numberIn(value: string): number | string {
  return /^(0|[1-9]\d*)$/.test(value) ? Number(value) : value;
}
