import { isUtf8 } from 'node:buffer';
import { JsonScanError, JsonScanner, MAX_SCAN_DEPTH } from './json-scanner.js';
import { PublishRefusedError } from './publish-refused.error.js';

/** How the messages of a batch are written: one JSON object per line, or one JSON array of them. */
export type BatchFormat = 'ndjson' | 'array';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const OPEN_BRACKET = 0x5b;

/**
 * Finds the messages of a batch in its body; each is then read on its own, with `readPublish`, and stands or falls alone.
 * @returns views into the body, one for each message, at least one
 * @throws {PublishRefusedError} for the batch as a whole: 400 when it has no message, or is an array and no JSON to its end; 413 when it has more
 *   than `maxMessages`
 */
export function splitBatch(body: Buffer, format: BatchFormat, maxMessages: number): Buffer[] {
  const messages = format === 'ndjson' ? linesOf(body, maxMessages) : elementsOf(body, maxMessages);
  if (messages.length === 0) throw new PublishRefusedError(400, undefined, 'the batch has no message; send one at least');
  return messages;
}

/** Lines end with a line feed, or carriage return and line feed, the last one with or without. Empty ones are no messages. */
function linesOf(body: Buffer, maxMessages: number): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < body.length;) {
    const lineFeed = body.indexOf(LINE_FEED, start);
    const next = lineFeed === -1 ? body.length : lineFeed + 1;
    let end = lineFeed === -1 ? body.length : lineFeed;
    if (end > start && body[end - 1] === CARRIAGE_RETURN) end -= 1;
    if (end > start) {
      refuseMoreThan(maxMessages, lines.length);
      lines.push(body.subarray(start, end));
    }
    start = next;
  }
  return lines;
}

function elementsOf(body: Buffer, maxMessages: number): Buffer[] {
  if (!isUtf8(body)) throw new PublishRefusedError(400, undefined, 'the body is not valid UTF-8');
  const elements: Buffer[] = [];
  // Deeper than a message may be: one that goes too deep is refused alone, and not the batch.
  const json = new JsonScanner(body, MAX_SCAN_DEPTH);
  try {
    if (json.peek() !== OPEN_BRACKET) throw new PublishRefusedError(400, undefined, 'the body is a JSON array of messages, nothing else');
    json.enterArray();
    while (json.nextElement()) {
      refuseMoreThan(maxMessages, elements.length);
      json.skipValue();
      elements.push(body.subarray(json.valueStart, json.valueEnd));
    }
    json.expectEnd();
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error;
    const reason = error.kind === 'depth' ? `the body ${error.message}` : `the body is not JSON: ${error.message}`;
    throw new PublishRefusedError(400, undefined, `${reason}; nothing of the batch is stored`);
  }
  return elements;
}

function refuseMoreThan(maxMessages: number, count: number): void {
  if (count >= maxMessages) {
    throw new PublishRefusedError(413, undefined, `the batch has more messages than batch.max-messages, which is ${maxMessages}`);
  }
}
