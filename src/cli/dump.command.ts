import { resolve } from 'node:path';
import { ErrorCode, MmmqError } from '../core/index.js';
import { readStored } from '../message/index.js';
import type { FileSystem } from '../storage/index.js';
import { DataDirectory } from './data-directory.js';
import { ExitCode } from './exit-code.js';
import { readEntries } from './segment-entries.js';
import { judgeSegment } from './segment-judgement.js';
import { SegmentWindow } from './segment-window.js';
import type { Terminal } from './terminal.js';
import { findTopicFiles, type SegmentPair } from './topic-files.js';

export interface DumpOptions {
  /** The first offset. */
  readonly from: number;
  /** The last offset. */
  readonly to: number;
}

/** So much is handed to the terminal at a time. */
const PRINT_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

export async function dumpCommand(
  fileSystem: FileSystem,
  terminal: Terminal,
  dir: string,
  topic: string,
  options: DumpOptions,
): Promise<ExitCode> {
  const rootDir = resolve(dir);
  return DataDirectory.whileLocked(fileSystem, rootDir, () =>
    DataDirectory.read(fileSystem, rootDir, async (directory) => {
      if (!(await directory.list()).topics.includes(topic)) {
        throw new MmmqError(ErrorCode.INVALID_VALUE, `there is no topic ${JSON.stringify(topic)} in ${rootDir}`);
      }
      await new Dump(directory, terminal, options).print(topic);
      return ExitCode.WELL;
    }),
  );
}

class Dump {
  private lines: Buffer[] = [];
  private bytes = 0;

  constructor(
    private readonly directory: DataDirectory,
    private readonly terminal: Terminal,
    private readonly options: DumpOptions,
  ) {}

  async print(topic: string): Promise<void> {
    const { pairs } = await findTopicFiles(this.directory.fileSystem, this.directory.rootDir, topic);
    for (const [index, pair] of pairs.entries()) {
      const next = pairs[index + 1]?.baseOffset;
      if (pair.baseOffset > this.options.to || (next !== undefined && next <= this.options.from)) continue;
      if (!pair.hasSegment || !pair.hasOffsetIndex) {
        this.terminal.note(`mmmq: one file of the segment at offset ${pair.baseOffset} is missing: it is left out`);
      } else if (!(await this.printSegment(pair, next === undefined))) return;
    }
    await this.flush();
  }

  /** @returns false once nobody reads any more */
  private async printSegment(pair: SegmentPair, isLast: boolean): Promise<boolean> {
    const { stores } = this.directory;
    const { extent, positions, isEndKnown, refusal } = await judgeSegment(stores, pair, isLast);
    if (refusal !== undefined) {
      const { file, position, reason } = refusal;
      this.terminal.note(`mmmq: a start is refused (${file}, byte ${position}: ${reason}): what can be read follows`);
    }
    const { count, endPosition } = extent;
    const window = new SegmentWindow(stores, pair.segment, endPosition);
    const first = Math.max(0, this.options.from - pair.baseOffset);
    const end = Math.min(count, this.options.to - pair.baseOffset + 1);
    for await (const { record, payload, corruption } of readEntries(window, positions, { first, count, isEndKnown })) {
      if (record >= end) break;
      this.add(lineOf(pair.baseOffset + record, payload, corruption));
      if (this.bytes >= PRINT_BYTES && !(await this.flush())) return false;
    }
    return true;
  }

  private add(line: Buffer): void {
    this.lines.push(line);
    this.bytes += line.length;
  }

  private flush(): Promise<boolean> {
    const text = Buffer.concat(this.lines.splice(0));
    this.bytes = 0;
    return text.length === 0 ? Promise.resolve(true) : this.terminal.print(text);
  }
}

/** One line: a message's stored bytes, or why there are none that can be trusted. */
function lineOf(offset: number, payload: Buffer | undefined, corruption: string | undefined): Buffer {
  if (payload === undefined || readStored(payload) === undefined) {
    return Buffer.from(`${JSON.stringify({ offset, corrupt: corruption ?? 'it is no JSON object' })}\n`);
  }
  return Buffer.concat([Buffer.from(`{"offset":${offset},"message":`), onOneLine(payload), Buffer.from('}\n')]);
}

/** In JSON a line break can only stand between values, where a space means the same. */
function onOneLine(json: Buffer): Buffer {
  if (!json.includes(LINE_FEED) && !json.includes(CARRIAGE_RETURN)) return json;
  return Buffer.from(json.map((byte) => (byte === LINE_FEED || byte === CARRIAGE_RETURN ? SPACE : byte)));
}
