import { ErrorCode, MmmqError } from '../core/index.js';

/** One thing that is wrong, and who must mend it where. */
export interface SettingProblem {
  /** As it is spelled where it was given: `mmmq.broker.segment.max-bytes`, `segment.maxBytes`, `MMMQ_CONFIG_FILE`. */
  readonly key: string;
  /** The value as text, cut to a bounded length; undefined where there is none. */
  readonly value?: string | undefined;
  /** What the value must be. */
  readonly rule: string;
  /** File and line, environment variable, or the call that was given the options. */
  readonly origin: string;
}

/** The settings cannot be used. The message lists every problem, one a line, with key, value, rule and origin. */
export class InvalidSettingsError extends MmmqError {
  constructor(readonly problems: readonly SettingProblem[]) {
    super(ErrorCode.INVALID_SETTINGS, `The settings cannot be used; nothing was started.\n${problems.map(line).join('\n')}`);
  }
}

function line({ key, value, rule, origin }: SettingProblem): string {
  return `- ${key}${value === undefined ? '' : ` = ${value}`}: ${rule} (${origin})`;
}
