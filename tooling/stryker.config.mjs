// `npm run mutate`: puts one fault after another into the host code and reports which ones no test sees.
// The page is .mutation/report.html; what was tried before and has not changed since is not tried again.

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: [
    'packages/{cuda,tensor-core,optim}/src/**/*.ts',
    'packages/reports/src/{table/number-text,text/csv,text/text-form}.ts',
    'packages/bench-harness/src/measuring/*.ts',
    'packages/bench-harness/src/records/record.ts',
    'packages/bench-harness/src/runner/cell-outcome.ts',
    'packages/bench-harness/src/device/measure-ceilings.ts',
    'packages/bench-harness/src/benchmarks/e2e/phase-work.ts',
    'packages/bench-harness/src/benchmarks/overhead/measure-*.ts',
    'packages/bench-harness/src/benchmarks/profile/kernel-spans.ts',
    // Text of CUDA C++, and helpers of tests.
    '!packages/tensor-core/src/backends/cuda/generated/**',
    '!packages/cuda/src/{testing/**,testing.ts,host.ts,parts.ts}',
    '!packages/tensor-core/src/{testing/**,testing.ts,kernel-api.ts}',
    '!packages/*/src/index.ts',
  ],
  plugins: ['@stryker-mutator/vitest-runner', './tooling/mutation-ignorers.mjs'],
  ignorers: ['error-texts'],
  testRunner: 'vitest',
  // Native libraries do not all bear worker threads.
  vitest: { configFile: 'tooling/vitest.mutation.config.ts', pool: 'forks' },
  coverageAnalysis: 'perTest',
  // What runs once, as a module is loaded (tables, definitions of ops, constants), has run before the fault is there: it
  // would be counted as one that no test sees.
  ignoreStatic: true,
  concurrency: 2,
  timeoutMS: 30_000,
  dryRunTimeoutMinutes: 30,
  // Types are stripped, not checked, before a test runs.
  disableTypeChecks: false,
  ignorePatterns: ['dist', '/results', '.turbo', '.mutation'],
  tempDirName: '.mutation/sandbox',
  cleanTempDir: 'always',
  incremental: true,
  incrementalFile: '.mutation/incremental.json',
  reporters: ['clear-text', 'progress-append-only', 'html', 'json'],
  htmlReporter: { fileName: '.mutation/report.html' },
  jsonReporter: { fileName: '.mutation/report.json' },
  clearTextReporter: { reportTests: false, allowColor: false, skipFull: true },
  thresholds: { high: 90, low: 80, break: null },
  allowEmpty: true,
};
