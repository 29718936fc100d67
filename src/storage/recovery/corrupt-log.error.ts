import { ErrorCode, MmmqError, shellWord } from '../../core/index.js';

/** A topic's files say what an interrupted append cannot have left behind. */
export class CorruptLogError extends MmmqError {
  constructor(
    readonly file: string,
    /** Byte position in the file. */
    readonly position: number,
    readonly reason: string,
  ) {
    super(
      ErrorCode.CORRUPT,
      `${file}, byte ${position}: ${reason}. Recovery does not guess what is missing: restore this topic's directory from a copy, ` +
        'or move it out of the data directory to start without the topic',
    );
  }
}

/** The broker does not start on this data directory. Every byte is as it was. */
export class StartRefusedError extends MmmqError {
  constructor(
    rootDir: string,
    readonly findings: readonly MmmqError[],
  ) {
    const isCorrupt = findings.some((finding) => finding.code === ErrorCode.CORRUPT);
    super(
      findings.every((finding) => finding.code === ErrorCode.CORRUPT) ? ErrorCode.CORRUPT : ErrorCode.IO,
      [
        `the data directory ${rootDir} cannot be used; nothing in it was changed:`,
        ...findings.map((finding) => `  ${finding.message}`),
        ...(isCorrupt
          ? [`"npx mmmq repair ${shellWord(rootDir)}" says what of it can be mended, and changes nothing; with --write it does it`]
          : []),
      ].join('\n'),
      { cause: findings[0] },
    );
  }
}
