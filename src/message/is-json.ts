import { isUtf8 } from 'node:buffer';
import { JsonScanError, JsonScanner, MAX_SCAN_DEPTH } from './json-scanner.js';

/** Whether the bytes are one JSON value in UTF-8, with no more than `maxDepth` levels of arrays and objects, and nothing around it but white space. */
export function isJson(bytes: Buffer, maxDepth = MAX_SCAN_DEPTH): boolean {
  if (!isUtf8(bytes)) return false;
  try {
    const json = new JsonScanner(bytes, maxDepth);
    json.skipValue();
    json.expectEnd();
    return true;
  } catch (error) {
    if (error instanceof JsonScanError) return false;
    throw error;
  }
}
