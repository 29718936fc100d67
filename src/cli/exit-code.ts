/** How a command ends. */
export const ExitCode = {
  /** All is well: nothing was found, or nothing is left to be done. */
  WELL: 0,
  /** Something was found, or is left to be done. */
  FINDINGS: 1,
  /** The command could not do its work: the directory cannot be read or is in use, or the command line is wrong. */
  FAILED: 2,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];
