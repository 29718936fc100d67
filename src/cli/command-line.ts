import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { MmmqError } from '../core/index.js';
import type { FileSystem } from '../storage/index.js';
import { dumpCommand, type DumpOptions } from './dump.command.js';
import { ExitCode } from './exit-code.js';
import { repairCommand } from './repair.command.js';
import type { Terminal } from './terminal.js';
import { verifyCommand, type VerifyOptions } from './verify.command.js';

const EXIT_CODES = `
Exit codes: 0 all is well, 1 there are findings or something is left to be done, 2 the command could not do its work.`;

/** Runs one command line: `verify`, `repair` or `dump` with what follows it. @returns the exit code */
export async function runCommandLine(words: readonly string[], terminal: Terminal, fileSystem: FileSystem): Promise<ExitCode> {
  let exitCode: ExitCode = ExitCode.WELL;
  const ends = (outcome: ExitCode): void => {
    exitCode = outcome;
  };
  try {
    await commands(fileSystem, terminal, ends).parseAsync(words, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has said what is wrong, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.WELL : ExitCode.FAILED;
    terminal.note(
      `mmmq: ${error instanceof MmmqError ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
    return ExitCode.FAILED;
  }
}

function commands(fileSystem: FileSystem, terminal: Terminal, ends: (outcome: ExitCode) => void): Command {
  const program = new Command('mmmq')
    .description('Looks at the data directory of an mmmq broker that is stopped, and mends it.')
    .addHelpText('after', EXIT_CODES)
    .exitOverride()
    .configureOutput({ writeOut: (text) => void terminal.print(text), writeErr: (text) => terminal.note(text.trimEnd()) });

  program
    .command('verify')
    .description('read everything, change nothing, and report what is there and what is wrong')
    .argument('<dir>', 'the data directory (mmmq.broker.storage.root-dir)')
    .option('--json', 'print one JSON document', false)
    .option('--live', 'read beside a running broker, without the lock; what is being written is not judged', false)
    .action(async (dir: string, options: VerifyOptions) => ends(await verifyCommand(fileSystem, terminal, dir, options)));

  program
    .command('repair')
    .description('say what has to be done so that a start succeeds, and do it with --write; no message that is whole is removed')
    .argument('<dir>', 'the data directory')
    .option('--write', 'do it, after copying what it changes to <dir>.repair-<time>', false)
    .option('--topic <topic>', 'this topic alone')
    .action(async (dir: string, { write, topic }: { write: boolean; topic?: string }) =>
      ends(await repairCommand(fileSystem, terminal, dir, { write, topic })),
    );

  program
    .command('dump')
    .description('print the messages of a topic, one JSON object per line')
    .argument('<dir>', 'the data directory')
    .argument('<topic>', 'the topic')
    .option('--from <offset>', 'the first offset', offset, 0)
    .option('--to <offset>', 'the last offset', offset, Number.MAX_SAFE_INTEGER)
    .action(async (dir: string, topic: string, options: DumpOptions) => ends(await dumpCommand(fileSystem, terminal, dir, topic, options)));

  return program;
}

function offset(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw new InvalidArgumentError('an offset is a whole number from 0 on.');
  return value;
}
