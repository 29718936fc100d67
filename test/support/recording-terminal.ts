import type { FileSystem } from '../../src/storage/index.js';
import { NodeFileSystem } from '../../src/storage/index.js';
import { runCommandLine } from '../../src/cli/command-line.js';
import type { Terminal } from '../../src/cli/terminal.js';

export interface CommandEnd {
  readonly code: number;
  readonly output: string;
  readonly notes: string;
}

/** Runs an offline tool in this process. */
export async function mmmq(words: readonly string[], fileSystem: FileSystem = new NodeFileSystem()): Promise<CommandEnd> {
  let output = '';
  let notes = '';
  const terminal: Terminal = {
    print: async (text) => {
      output += String(text);
      return true;
    },
    note: (line) => {
      notes += `${line}\n`;
    },
    progress: { begin: () => undefined, add: () => undefined, end: () => undefined },
  };
  const code = await runCommandLine(words, terminal, fileSystem);
  return { code, output, notes };
}
