import { FileError, OpenMode, type File } from '../storage/file-system/index.js';
import type { DataFiles, FoundFiles } from './data-files.js';
import type { FilePosition } from './file-position.js';
import { isPlausible, type Metadata } from './metadata.js';
import type { MetadataFile } from './metadata.file.js';
import { walkRecords, type MessageLimits } from './record.codec.js';
import type { TailFile } from './tail.file.js';

/** Where a queue goes on. */
export interface QueueStart {
  readonly depth: number;
  readonly read: FilePosition;
  readonly write: FilePosition;
  /** Whether the file that is written to is there. */
  readonly isMade: boolean;
  /** The files behind the one that is read, ascending, with the one that is written to. */
  readonly later: readonly number[];
  /** Those that were read to their end, and removed on no disk yet. */
  readonly stale: readonly number[];
  /** Whether the metadata on the disk says so too. */
  readonly isKnown: boolean;
}

/**
 * Decides from the files of a queue where it goes on.
 *
 * | found | left by | then |
 * |---|---|---|
 * | no metadata, or none that says anything | a queue before its first sync or that was emptied; a go-diskqueue whose power failed | all records of all files; a new file |
 * | the write file ends where the metadata says | a close, or a crash with nothing unsynced | as the metadata says |
 * | it is longer, with a tail file | a crash of ours | the records that the tail proves; the rest is cut; a new file where there are any |
 * | it is longer, without | a crash of go-diskqueue | the records that can be read as such; a new file |
 * | it is shorter, or there are files behind it | go-diskqueue, which does not sync at its close; somebody's hands | what is there, counted; a new file |
 * | the read file is missing, or one behind it | go-diskqueue, which removes before it writes the metadata; a crash while one was set aside | the next one, counted |
 * | files before the read file | a crash between metadata and removal | they are removed |
 */
export class QueueRecovery {
  constructor(
    private readonly files: DataFiles,
    private readonly metadata: MetadataFile,
    private readonly tail: TailFile,
    private readonly limits: MessageLimits,
    private readonly warn: (message: string) => void,
  ) {}

  async start(): Promise<QueueStart> {
    const found = await this.files.find();
    for (const path of found.leftovers) await this.files.removeLeftover(path);
    const metadata = await this.metadata.read();
    if (metadata?.says !== undefined) return this.startAt(metadata.says, found);
    if (metadata !== undefined) this.warn('its metadata says nothing: every message that is in its files counts as not yet read');
    const write = { file: found.highest + 1, position: 0 };
    const read = { file: found.numbers[0] ?? write.file, position: 0 };
    return this.counted(found, { depth: 0, read, write });
  }

  private async startAt(says: Metadata, found: FoundFiles): Promise<QueueStart> {
    const { read, write } = says;
    const size = found.numbers.includes(write.file) ? await this.use(write.file, OpenMode.READING, (file) => file.size()) : 0;
    const { count, end } = size > write.position ? await this.beyond(write, size) : { count: 0, end: size };
    if (size < write.position || found.highest > write.file || !hasAllBefore(found, says)) return this.withoutGuide(says, found, size);
    if (!isPlausible(says)) return this.counted(found, { ...says, write: end > write.position ? newFileBehind(found, write) : write });
    if (end === write.position) return startOf(found, says, true);
    this.warn(`${count} messages behind what its metadata says were found in ${this.files.path(write.file)}; a new file is begun`);
    return startOf(found, { depth: says.depth + count, read, write: newFileBehind(found, write) }, false);
  }

  /** The metadata and the files do not fit together: what is there from the read position on counts. */
  private withoutGuide({ read, write }: Metadata, found: FoundFiles, size: number): Promise<QueueStart> {
    const behind = newFileBehind(found, write);
    this.warn(
      `its metadata speaks of ${write.position} bytes in ${this.files.path(write.file)}, which has ${size}, and of the reading in file ` +
        `${read.file}; there are the files ${found.numbers.join(', ') || 'none'}: what they have from there on counts`,
    );
    const isReadable = found.numbers.includes(read.file);
    const next = found.numbers.find((file) => file > read.file) ?? behind.file;
    return this.counted(found, { depth: 0, read: isReadable ? read : { file: next, position: 0 }, write: behind });
  }

  /** What stands behind the metadata's write position, and counts. What does not is cut away, durably, where a tail file says so. */
  private async beyond(write: FilePosition, size: number): Promise<{ readonly count: number; readonly end: number }> {
    const proofs = await this.tail.read();
    return this.use(write.file, OpenMode.EXISTING, async (file) => {
      const proven = proofs === undefined ? size : await proofs.renew(file, write, size);
      if (proven < size) {
        this.warn(`${size - proven} bytes that a crash left at the end of ${file.path} are no whole messages, and are cut away`);
        await file.truncate(proven);
      }
      // A killed process leaves bytes that can be read and are not on the disk yet.
      await file.sync();
      const { count } = await walkRecords(file, write.position, proven, this.limits);
      return { count, end: proven };
    });
  }

  private async counted(found: FoundFiles, metadata: Metadata): Promise<QueueStart> {
    const start = startOf(found, metadata, false);
    const { read, write } = metadata;
    // What is counted has to be there after the next power cut too.
    for (const file of found.numbers) if (file >= read.file) await this.use(file, OpenMode.EXISTING, (opened) => opened.sync());
    return { ...start, depth: await countRecords(this.files, read, [read.file, ...start.later], write, this.limits) };
  }

  private async use<T>(file: number, mode: OpenMode, work: (file: File) => Promise<T>): Promise<T> {
    const opened = await this.files.open(file, mode);
    try {
      return await work(opened);
    } finally {
      await opened.close();
    }
  }
}

/**
 * The messages that a reader comes to, from `read` on.
 * @param files ascending, from the one of `read` to the one of `write`; those that are not there have none
 */
export async function countRecords(
  files: DataFiles,
  read: FilePosition,
  numbers: readonly number[],
  write: FilePosition,
  limits: MessageLimits,
): Promise<number> {
  let count = 0;
  for (const number of numbers) {
    const from = number === read.file ? read.position : 0;
    if (number === write.file && from >= write.position) continue;
    try {
      const file = await files.open(number, OpenMode.READING);
      try {
        const end = number === write.file ? write.position : await file.size();
        count += (await walkRecords(file, from, end, limits)).count;
      } finally {
        await file.close();
      }
    } catch (error) {
      if (!(error instanceof FileError) || !error.isMissing) throw error;
    }
  }
  return count;
}

function newFileBehind({ highest }: FoundFiles, write: FilePosition): FilePosition {
  return { file: Math.max(highest, write.file) + 1, position: 0 };
}

/** Whether every file is there from the one that is read to the one that is written to, which may be yet to be made. */
function hasAllBefore({ numbers }: FoundFiles, { read, write }: Metadata): boolean {
  return numbers.filter((file) => file >= read.file && file < write.file).length === write.file - read.file;
}

function startOf({ numbers }: FoundFiles, { depth, read, write }: Metadata, isKnown: boolean): QueueStart {
  const later = numbers.filter((file) => file > read.file && file < write.file);
  if (write.file > read.file) later.push(write.file);
  return { depth, read, write, isMade: numbers.includes(write.file), later, stale: numbers.filter((file) => file < read.file), isKnown };
}
