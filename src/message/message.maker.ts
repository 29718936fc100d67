import { Message } from './message.js';
import { PublishRefusedError } from './publish-refused.error.js';
import { readPublish } from './publish.reader.js';

/** A message to publish from inside the process. The rules are those of a publish over HTTP. */
export interface MessageDraft {
  readonly topic: string;
  /** Anything that JSON can hold, but null. It is serialised at once; later changes to it change nothing. */
  readonly content: unknown;
  readonly id?: string | undefined;
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/**
 * Makes a message of values: `JSON.stringify`, then the very same validation as a publish over HTTP.
 * @throws {PublishRefusedError} status 400, with the member that is to blame and the rule it breaks
 */
export function messageOf({ topic, content, id, key, headers }: MessageDraft): Message {
  let json: string;
  try {
    json = JSON.stringify({ topic, id, key, headers, content });
  } catch (error) {
    throw new PublishRefusedError(400, 'content', `the content cannot be made JSON: ${String(error)}`, { cause: error });
  }
  return readPublish(Buffer.from(json), {});
}
