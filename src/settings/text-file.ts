import { readFileSync } from 'node:fs';

/** What a file has to say, or why it says nothing. */
export type FileText =
  { readonly text: string; readonly failure?: undefined } | { readonly text?: undefined; readonly failure: FileFailure };

export interface FileFailure {
  readonly missing: boolean;
  /** Completes "it …". */
  readonly reason: string;
}

/** Reads a whole file as UTF-8, without its byte order mark. */
export function readText(path: string): FileText {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    return { failure: failureOf(error) };
  }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { failure: { missing: false, reason: 'is not UTF-8' } };
  }
}

function failureOf(error: unknown): FileFailure {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return { missing: true, reason: 'is not there' };
  if (code === 'EISDIR') return { missing: false, reason: 'is a directory' };
  if (code === 'EACCES' || code === 'EPERM') return { missing: false, reason: 'may not be read by this user' };
  return { missing: false, reason: `cannot be read: ${message}` };
}
