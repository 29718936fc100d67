import { isUtf8 } from 'node:buffer';
import { JsonScanError, JsonScanner, MAX_SCAN_DEPTH } from './json-scanner.js';

/**
 * The elements of a JSON array that somebody has sent.
 * @param maxCount as many are looked for; an array that has more is none
 * @returns the bytes of each, as views; undefined where the body is no JSON array in UTF-8
 */
export function jsonElements(body: Buffer, maxCount: number = Number.POSITIVE_INFINITY): readonly Buffer[] | undefined {
  if (!isUtf8(body)) return undefined;
  const elements: Buffer[] = [];
  try {
    const json = new JsonScanner(body, MAX_SCAN_DEPTH);
    json.enterArray();
    while (json.nextElement()) {
      if (elements.length === maxCount) return undefined;
      json.skipValue();
      elements.push(body.subarray(json.valueStart, json.valueEnd));
    }
    json.expectEnd();
    return elements;
  } catch (error) {
    if (error instanceof JsonScanError) return undefined;
    throw error;
  }
}
