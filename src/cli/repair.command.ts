import { join, relative, resolve } from 'node:path';
import { ErrorCode, MmmqError, shellWord, systemClock } from '../core/index.js';
import type { FileSystem } from '../storage/index.js';
import { DataDirectory } from './data-directory.js';
import { ExitCode } from './exit-code.js';
import { planRepair, type TopicPlan } from './repair-plan.js';
import { RepairWork } from './repair-work.js';
import type { Terminal } from './terminal.js';
import { verify } from './verification.js';
import { verificationText } from './verify.command.js';

export interface RepairOptions {
  readonly write: boolean;
  readonly topic: string | undefined;
}

export async function repairCommand(fileSystem: FileSystem, terminal: Terminal, dir: string, options: RepairOptions): Promise<ExitCode> {
  const rootDir = resolve(dir);
  return DataDirectory.whileLocked(fileSystem, rootDir, async () => {
    const { topics, plans } = await DataDirectory.read(fileSystem, rootDir, async (directory) => {
      const chosen = chooseTopics(rootDir, (await directory.list()).topics, options.topic);
      const planned: TopicPlan[] = [];
      for (const topic of chosen) planned.push(await planRepair(directory, topic));
      return { topics: chosen, plans: planned };
    });
    const isWhole = plans.every(({ remaining }) => remaining.length === 0);
    const isDone = plans.every(({ steps }) => steps.length === 0);
    await terminal.print(plansText(rootDir, plans, options.write));
    if (isDone) {
      if (isWhole) await terminal.print('Nothing is to be repaired.\n');
      return isWhole ? ExitCode.WELL : ExitCode.FINDINGS;
    }
    if (!options.write) {
      const command = [
        'npx mmmq repair',
        shellWord(rootDir),
        ...(options.topic === undefined ? [] : ['--topic', options.topic]),
        '--write',
      ];
      await terminal.print(`Nothing was changed. To do it: ${command.join(' ')}\n`);
      return ExitCode.FINDINGS;
    }
    const asideDir = await new RepairWork(fileSystem, rootDir, new Date(systemClock.now())).apply(plans);
    await terminal.print(`Done. What was changed stands as it was in ${asideDir}\n`);
    const report = await DataDirectory.read(fileSystem, rootDir, (directory) =>
      verify(directory, { live: false, topics, progress: terminal.progress }),
    );
    await terminal.print(verificationText(report));
    if (report.topics.some(({ unreadable }) => unreadable !== undefined)) return ExitCode.FAILED;
    const isAccepted = report.topics.every(({ refusals }) => refusals.length === 0);
    return isWhole && isAccepted ? ExitCode.WELL : ExitCode.FINDINGS;
  });
}

function chooseTopics(rootDir: string, found: readonly string[], chosen: string | undefined): readonly string[] {
  if (chosen === undefined) return found;
  if (!found.includes(chosen)) throw new MmmqError(ErrorCode.INVALID_VALUE, `there is no topic ${JSON.stringify(chosen)} in ${rootDir}`);
  return [chosen];
}

function plansText(rootDir: string, plans: readonly TopicPlan[], isWriting: boolean): string {
  const lines: string[] = [];
  const name = (path: string): string => relative(rootDir, path);
  for (const { topic, steps, losses, remaining } of plans) {
    if (steps.length + losses.length + remaining.length === 0) continue;
    lines.push(`${topic}:`);
    for (const step of steps) {
      const what = {
        'rebuild-index': () => `rebuild ${name(step.path)}`,
        cut: () => `cut ${name(step.path)} to ${'size' in step ? step.size : 0} bytes`,
        make: () => `make ${name(step.path)}`,
        remove: () => `remove ${name(step.path)}`,
        'set-checkpoint': () => `set ${name(step.path)} to offset ${'offset' in step ? step.offset : 0}`,
      }[step.kind]();
      lines.push(`  ${isWriting ? 'will' : 'would'} ${what}: ${step.reason}`);
    }
    for (const { isCertain, what } of losses) lines.push(`  ${isCertain ? 'lost' : 'may be lost'}: ${what}`);
    for (const { reason, remedy } of remaining) lines.push(`  not repaired: ${reason}`, `    what remains to you: ${remedy}`);
    if (remaining.length > 0 && steps.length === 0) lines.push(`  nothing of ${join(rootDir, topic)} is changed`);
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}
