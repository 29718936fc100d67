import { dirname } from 'node:path';
import { OpenMode, writeFully, type File, type FileSystem } from '../../storage/file-system/index.js';
import type { OutgoingMessage } from '../outgoing-message.js';
import type { Refusal } from '../produce-refused.error.js';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

/**
 * The messages of the spool that the broker has refused for good, with the reason: one line of JSON each, for people and programs to look at.
 * Nobody reads it here, and it only grows; it may be moved away at any time.
 *
 * A crash in the middle of an append leaves a part of a line; the next append begins a line of its own behind it.
 */
export class DeadFile {
  constructor(
    private readonly fileSystem: FileSystem,
    readonly path: string,
  ) {}

  /**
   * Appends the lines. The file is opened each time: after a failed sync nothing is taken for granted of a handle, and who moves the file away
   * gets a new one.
   * @returns once they are durable
   * @throws {FileError} they may be there or not; appended again they may be there twice
   */
  async append(lines: readonly Buffer[]): Promise<void> {
    const file = await this.fileSystem.open(this.path, OpenMode.EXISTING_OR_NEW);
    try {
      const size = await file.size();
      const start = (await endsInLine(file, size)) ? [] : [Buffer.of(LINE_FEED)];
      try {
        await writeFully(file, Buffer.concat([...start, ...lines]), size);
      } catch (error) {
        // What is left of it gives the disk its room back; where it stays, it is a line that ends early.
        await file.truncate(size).catch(() => undefined);
        throw error;
      }
      await file.sync();
    } finally {
      await file.close().catch(() => undefined);
    }
    // A name is durable only with its directory, and a crash may have come between the two the last time.
    await this.fileSystem.syncDirectory(dirname(this.path));
  }
}

/** What a line says: `{"time":…,"topic":…,"id":…,"status":…,"field":…,"reason":…,"trace":…,"message":…}`, the message as it was sent. */
export function deadLine({ topic, id, trace, body }: OutgoingMessage, { status, field, reason }: Refusal, nowMs: number): Buffer {
  const head = JSON.stringify({ time: new Date(nowMs).toISOString(), topic, id, status, field, reason, trace });
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"message":`), onOneLine(body), Buffer.from('}\n')]);
}

/** What stood in the spool and is no message of a producer; its bytes are in base64. */
export function unreadableLine(record: Buffer, nowMs: number): Buffer {
  const reason = 'this is no message of a producer';
  return Buffer.from(`${JSON.stringify({ time: new Date(nowMs).toISOString(), reason, record: record.toString('base64') })}\n`);
}

/** In JSON a line break stands between tokens only, where a space means the same. */
function onOneLine(body: Buffer): Buffer {
  if (!body.includes(LINE_FEED) && !body.includes(CARRIAGE_RETURN)) return body;
  return Buffer.from(body.map((byte) => (byte === LINE_FEED || byte === CARRIAGE_RETURN ? SPACE : byte)));
}

async function endsInLine(file: File, size: number): Promise<boolean> {
  if (size === 0) return true;
  const last = Buffer.alloc(1);
  await file.read(last, size - 1);
  return last[0] === LINE_FEED;
}
