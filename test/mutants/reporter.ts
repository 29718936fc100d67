import { stripVTControlCharacters } from 'node:util';

/** What jest tells about a test, as far as it is needed here. */
interface TestCaseResult {
  readonly status: string;
  readonly title: string;
  readonly failureMessages: readonly string[];
}
interface TestFileResult {
  readonly testExecError?: { readonly message?: string; readonly stack?: string };
}
interface RunResult {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
}

/** What the reporter sends to the process that started jest. */
export type Report =
  /** `isProof` tells a failure from a mistake. */
  | {
      readonly kind: 'failed';
      readonly test: string;
      readonly message: string;
      readonly isProof: boolean;
    }
  /** A file of tests that could not be run. */
  | { readonly kind: 'broken'; readonly message: string }
  | { readonly kind: 'finished'; readonly passed: number; readonly failed: number };

/** Code that is wrong in itself, and a test that ran out of time, prove nothing. */
const NO_PROOF = /^(ReferenceError|TypeError|SyntaxError)\b|Exceeded timeout of/;

/** Tells of each test as soon as it is over, so that the first failure can end the run. */
export default class MutantReporter {
  onTestCaseResult(_test: unknown, { status, title, failureMessages }: TestCaseResult): void {
    if (status !== 'failed') return;
    const message = failureMessages[0] ?? '';
    send({
      kind: 'failed',
      test: title,
      message,
      isProof: !NO_PROOF.test(stripVTControlCharacters(message)),
    });
  }

  onTestFileResult(_test: unknown, { testExecError }: TestFileResult): void {
    if (testExecError !== undefined) send({ kind: 'broken', message: testExecError.stack ?? testExecError.message ?? 'it cannot be run' });
  }

  onRunComplete(_contexts: unknown, { numPassedTests, numFailedTests }: RunResult): void {
    send({ kind: 'finished', passed: numPassedTests, failed: numFailedTests });
  }
}

function send(report: Report): void {
  process.send?.(report);
}
