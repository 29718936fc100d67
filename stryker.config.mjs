/**
 * Mutates all of src/storage and runs the specs beside it: npm run mutants:stryker, or one file: npm run mutants:stryker -- -m src/storage/….ts.
 * `npm run mutants` is the other half: the promises that only a crash shows.
 */
export default {
  plugins: ['@stryker-mutator/jest-runner'],
  testRunner: 'jest',
  testRunnerNodeArgs: ['--experimental-vm-modules'],
  jest: {
    configFile: 'jest.config.mjs',
    config: { testMatch: ['<rootDir>/src/storage/**/*.spec.ts'] },
    enableFindRelatedTests: false,
  },
  coverageAnalysis: 'perTest',
  mutate: ['src/storage/**/*.ts', '!src/storage/**/*.spec.ts', '!src/storage/**/*.d.ts', '!src/storage/**/index.ts'],
  // What a log line or an error says is no promise; that it says which file and what to do is tested where it matters.
  mutator: { excludedMutations: ['StringLiteral'] },
  ignorePatterns: ['/dist', '/data', '/examples'],
  concurrency: 2,
  timeoutMS: 10_000,
  reporters: ['clear-text', 'progress-append-only', 'html', 'json'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  htmlReporter: { fileName: 'reports/mutation/mutation.html' },
  jsonReporter: { fileName: 'reports/mutation/mutation.json' },
  tempDirName: '.stryker-tmp',
};
