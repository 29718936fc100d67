/*
 * The files of a queue, beside those of other queues of the same directory:
 *
 *   NAME.diskqueue.000000.dat          the records of one stretch; the number grows with each new file
 *   NAME.diskqueue.000000.dat.bad      one that could not be read to its end, kept for whoever wants to look
 *   NAME.diskqueue.meta.dat            where the queue begins and ends, and how many messages it has
 *   NAME.diskqueue.meta.dat.tmp        the next one of these, until it takes its place; go-diskqueue puts a number before `.tmp`
 *   NAME.diskqueue.tail                what proves the records that the metadata does not know yet; only while the queue is open
 *
 * All but the last are go-diskqueue's.
 */

const NUMBER_DIGITS = 6;
const BAD = '.bad';

export function dataFileName(queue: string, file: number): string {
  return `${queue}.diskqueue.${String(file).padStart(NUMBER_DIGITS, '0')}.dat`;
}

export function badFileName(queue: string, file: number): string {
  return `${dataFileName(queue, file)}${BAD}`;
}

/** @returns undefined where the file is no data file of this queue */
export function parseDataFileName(queue: string, fileName: string): { readonly file: number; readonly isBad: boolean } | undefined {
  const isBad = fileName.endsWith(BAD);
  const prefix = `${queue}.diskqueue.`;
  const digits = /^(\d{6,15})\.dat(?:\.bad)?$/.exec(fileName.startsWith(prefix) ? fileName.slice(prefix.length) : '')?.[1];
  if (digits === undefined) return undefined;
  const file = Number(digits);
  return fileName === (isBad ? badFileName(queue, file) : dataFileName(queue, file)) ? { file, isBad } : undefined;
}

export function metadataFileName(queue: string): string {
  return `${queue}.diskqueue.meta.dat`;
}

export function temporaryMetadataFileName(queue: string): string {
  return `${metadataFileName(queue)}.tmp`;
}

/** Whether a crash left it in go-diskqueue between the writing of the metadata and its renaming. Ours is written over the next time. */
export function isForeignTemporaryFileName(queue: string, fileName: string): boolean {
  const prefix = `${metadataFileName(queue)}.`;
  return fileName.startsWith(prefix) && /^\d+\.tmp$/.test(fileName.slice(prefix.length));
}

export function tailFileName(queue: string): string {
  return `${queue}.diskqueue.tail`;
}
