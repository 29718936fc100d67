import { isSamePosition, type FilePosition } from './file-position.js';

/** What the queue remembers of itself. */
export interface Metadata {
  /** Messages from `read` to `write`. */
  readonly depth: number;
  /** The oldest message that was not removed. */
  readonly read: FilePosition;
  /** Where the next one is to be written. */
  readonly write: FilePosition;
}

const FORM = /^(-?\d+)\n(\d+),(\d+)\n(\d+),(\d+)\n?$/;

/** `depth\nreadFile,readPosition\nwriteFile,writePosition\n` */
export function formatMetadata({ depth, read, write }: Metadata): string {
  return `${depth}\n${read.file},${read.position}\n${write.file},${write.position}\n`;
}

/** @returns undefined where the text says nothing, or what cannot be: the reading before the beginning, or behind the writing */
export function parseMetadata(text: string): Metadata | undefined {
  const numbers = FORM.exec(text)?.slice(1).map(Number);
  if (numbers === undefined || !numbers.every(Number.isSafeInteger)) return undefined;
  const [depth = 0, readFile = 0, readPosition = 0, writeFile = 0, writePosition = 0] = numbers;
  if (readFile > writeFile || (readFile === writeFile && readPosition > writePosition)) return undefined;
  return { depth, read: { file: readFile, position: readPosition }, write: { file: writeFile, position: writePosition } };
}

/** Whether the depth can be right: go-diskqueue writes one below zero, and others that it only corrects at the end of the queue. */
export function isPlausible({ depth, read, write }: Metadata): boolean {
  return depth >= 0 && (depth === 0) === isSamePosition(read, write);
}
