import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node, type YAMLError } from 'yaml';
import type { SettingProblem } from './invalid-settings.error.js';
import { kebabCase, treeOf, type TreePath } from './settings-tree.js';

/** A settings file, parsed, that still knows the line of each of its keys. */
export class SettingsFile {
  readonly problems: readonly SettingProblem[];
  /** Its settings, in the spelling of the classes; empty where the file cannot be parsed. */
  readonly tree: object;
  private readonly lines = new LineCounter();
  private readonly document: Document;

  /** @param path for messages */
  constructor(
    private readonly path: string,
    private readonly text: string,
  ) {
    this.document = parse(text, this.lines);
    const { errors, warnings } = this.document;
    const problems = [...errors, ...warnings].map((error) => this.problemOf(error));
    // A key that is given twice leaves the rest of the file readable; after any other error what was read may mean something else.
    const readable = [...errors, ...warnings].every(({ code }) => code === 'DUPLICATE_KEY');
    const content = readable ? this.content() : { tree: {} };
    this.tree = content.tree;
    this.problems = content.problem === undefined ? problems : [...problems, content.problem];
  }

  /** File and line of the value at a path, or of the nearest group around it. */
  origin(path: TreePath): string {
    return this.at(positionOf(this.document, path));
  }

  private content(): { tree: object; problem?: SettingProblem } {
    let content: unknown;
    try {
      content = this.document.toJS();
    } catch (error) {
      return {
        tree: {},
        problem: this.problem(
          `has an alias that cannot be followed (put a pattern that begins with * in quotes): ${messageOf(error)}`,
          undefined,
        ),
      };
    }
    if (content === null || content === undefined) return { tree: {} };
    if (typeof content === 'object' && !Array.isArray(content)) return { tree: treeOf(content, kebabCase) as object };
    return { tree: {}, problem: this.problem('must be groups of settings, beginning with "server:" or "mmmq:"', 0) };
  }

  private problemOf(error: YAMLError): SettingProblem {
    const position = error.pos[0];
    if (error.code !== 'DUPLICATE_KEY') return this.problem(`cannot be read as YAML 1.2: ${error.message}`, position);
    const key = /^[^\s:]{0,100}/.exec(this.text.slice(position, position + 100))?.[0] ?? '';
    return { key, rule: 'is given twice in one group; keep one of the two', origin: this.at(position) };
  }

  private problem(rule: string, position: number | undefined): SettingProblem {
    return { key: 'settings file', rule, origin: this.at(position) };
  }

  private at(position: number | undefined): string {
    return position === undefined ? this.path : `${this.path}:${this.lines.linePos(position).line}`;
  }
}

function parse(text: string, lineCounter: LineCounter): Document {
  // The schema is named, so that a "%YAML 1.1" directive does not turn "yes" into true or 010 into eight.
  const options = {
    version: '1.2',
    schema: 'core',
    resolveKnownTags: false,
    stringKeys: true,
    prettyErrors: false,
    logLevel: 'error',
  } as const;
  return parseDocument(text, { ...options, lineCounter }) as Document;
}

/** Follows a path through the parsed file as far as it goes; the key where there is one, since a value may begin lines later. */
function positionOf(document: Document, path: TreePath): number | undefined {
  let node: unknown = document.contents;
  let position: number | undefined;
  for (const part of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && kebabCase.property(String(key.value)) === part);
      if (pair === undefined) return position;
      position = start(pair.key) ?? position;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      position = start(node) ?? position;
    } else {
      return position;
    }
  }
  return position;
}

function start(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
