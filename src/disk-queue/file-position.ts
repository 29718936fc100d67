/** A place between two records: byte `position` of the data file with the number `file`. */
export interface FilePosition {
  readonly file: number;
  readonly position: number;
}

export function isSamePosition(a: FilePosition, b: FilePosition): boolean {
  return a.file === b.file && a.position === b.position;
}
