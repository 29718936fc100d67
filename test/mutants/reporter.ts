import { stripVTControlCharacters } from 'node:util';

/** What jest tells about a test, as far as it is needed here. */
interface TestCaseResult {
  readonly status: string;
  readonly title: string;
  readonly failureMessages: readonly string[];
  readonly failureDetails: readonly unknown[];
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
  /** `violations` are those that the test compared with none; `isExpectation` tells what a test expected and did not get from any other error. */
  | {
      readonly kind: 'failed';
      readonly test: string;
      readonly message: string;
      readonly isExpectation: boolean;
      readonly violations: readonly string[];
    }
  /** A file of tests that could not be run. */
  | { readonly kind: 'broken'; readonly message: string }
  | { readonly kind: 'finished'; readonly passed: number; readonly failed: number };

/** How an expectation fails, and how test/support/until ends when what it waits for does not come. */
const EXPECTATION = /^(Error: )?expect\(|still not so after/;

/** Tells of each test as soon as it is over, so that the first failure can end the run. */
export default class MutantReporter {
  onTestCaseResult(_test: unknown, { status, title, failureMessages, failureDetails }: TestCaseResult): void {
    if (status !== 'failed') return;
    const [detail] = failureDetails as readonly { readonly matcherResult?: { readonly actual?: unknown } }[];
    const message = failureMessages[0] ?? '';
    const actual = detail?.matcherResult?.actual;
    send({
      kind: 'failed',
      test: title,
      message,
      isExpectation: EXPECTATION.test(stripVTControlCharacters(message)),
      violations: Array.isArray(actual) ? actual.filter((violation) => typeof violation === 'string') : [],
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
