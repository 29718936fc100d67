import { relative } from 'node:path';
import { shellWord } from '../core/index.js';
import type { FileSystem } from '../storage/index.js';
import { DataDirectory } from './data-directory.js';
import { ExitCode } from './exit-code.js';
import type { Obstacle } from './obstacle.js';
import { NO_PROGRESS, type Terminal } from './terminal.js';
import { hasFindings, verify, type TopicReport, type VerificationReport } from './verification.js';

export interface VerifyOptions {
  readonly json: boolean;
  readonly live: boolean;
}

export async function verifyCommand(fileSystem: FileSystem, terminal: Terminal, dir: string, options: VerifyOptions): Promise<ExitCode> {
  const { live } = options;
  const progress = options.json ? NO_PROGRESS : terminal.progress;
  const read = (): Promise<VerificationReport> => DataDirectory.read(fileSystem, dir, (directory) => verify(directory, { live, progress }));
  if (live) {
    terminal.note(
      'Reading without the lock. A broker may be writing: what stands behind the last position of a topic, such as an append under way, is not judged.',
    );
  }
  const report = live ? await read() : await DataDirectory.whileLocked(fileSystem, dir, read);
  await terminal.print(options.json ? `${JSON.stringify(report, null, 2)}\n` : verificationText(report));
  for (const { topic, unreadable } of report.topics)
    if (unreadable !== undefined) terminal.note(`mmmq: topic ${topic} could not be read to its end: ${unreadable}`);
  return exitCodeOf(report);
}

export function exitCodeOf(report: VerificationReport): ExitCode {
  if (report.topics.some(({ unreadable }) => unreadable !== undefined)) return ExitCode.FAILED;
  return hasFindings(report) ? ExitCode.FINDINGS : ExitCode.WELL;
}

/** The report for people: a line per topic, and one below it for each finding. */
export function verificationText(report: VerificationReport): string {
  const { rootDir } = report;
  const lines = [`${rootDir}: ${counted(report.topics.length, 'topic')}`];
  for (const topic of report.topics) lines.push(...topicLines(topic, rootDir));
  for (const obstacle of report.obstacles) lines.push(obstacleLine(obstacle, rootDir));
  for (const path of report.leftovers) lines.push(`  leftover: ${relative(rootDir, path)} is none of the broker's`);
  lines.push(conclusion(report));
  return `${lines.join('\n')}\n`;
}

function topicLines(topic: TopicReport, rootDir: string): string[] {
  const name = (path: string): string => relative(rootDir, path);
  const lines = [
    `${topic.topic}: ${counted(topic.segments, 'segment')}, ${counted(topic.messages, 'message')}, ${counted(topic.bytes, 'byte')}`,
  ];
  for (const { file, position, reason } of topic.refusals) lines.push(`  refuses a start: ${name(file)}, byte ${position}: ${reason}`);
  for (const { offset, file, position, reason } of topic.corrupt) {
    lines.push(`  corrupt: offset ${offset} (${name(file)}, byte ${position}): ${reason}`);
  }
  if (topic.corruptMessages > topic.corrupt.length) lines.push(`  corrupt: ${topic.corruptMessages - topic.corrupt.length} more`);
  for (const { file, reason } of topic.remnants) lines.push(`  mended by the next start: ${name(file)}: ${reason}`);
  for (const { dispatcher, offset, problem } of topic.checkpoints) {
    lines.push(
      `  checkpoint: ${dispatcher}${offset === undefined ? '' : ` at offset ${offset}`}${problem === undefined ? '' : `: ${problem}`}`,
    );
  }
  for (const obstacle of topic.obstacles) lines.push(obstacleLine(obstacle, rootDir));
  for (const path of topic.unfinishedRepairs) {
    lines.push(
      `  left by a repair that was interrupted: ${name(path)}: "npx mmmq repair ${shellWord(rootDir)} --write" finishes it or removes it`,
    );
  }
  for (const path of topic.leftovers) lines.push(`  leftover: ${name(path)} is none of the broker's`);
  if (topic.unreadable !== undefined) lines.push(`  unreadable: ${topic.unreadable}`);
  return lines;
}

function obstacleLine({ path, reason, remedy }: Obstacle, rootDir: string): string {
  return `  in the way: ${relative(rootDir, path)}: ${reason}: ${remedy}`;
}

function conclusion(report: VerificationReport): string {
  if (report.topics.some(({ unreadable }) => unreadable !== undefined)) return 'Not everything could be read.';
  if (!hasFindings(report)) return report.live ? 'Clean, as far as it can be read beside a broker.' : 'Clean.';
  const isRefused = report.topics.some(({ refusals }) => refusals.length > 0);
  if (isRefused) return `A start is refused. "npx mmmq repair ${shellWord(report.rootDir)}" says what of it can be mended.`;
  return report.topics.some(({ obstacles }) => obstacles.length > 0)
    ? 'There are findings; a start succeeds, but deliveries stand still until what is in their way is moved.'
    : 'There are findings; a start succeeds all the same.';
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
