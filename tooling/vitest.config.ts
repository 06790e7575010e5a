import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** Under `npm test` a package that passes is one line, and what fails is told in full. */
const isSummarized = process.env['ROOFLINE_TEST_SUMMARY'] !== undefined;
const summaryReporter = fileURLToPath(new URL('./summary-reporter.ts', import.meta.url));

// Tests read the packages' TypeScript sources, so that a failing line is the line one edits.
export default defineConfig({
  root: process.cwd(),
  resolve: { conditions: ['roofline-source'] },
  ssr: { resolve: { conditions: ['roofline-source'] } },
  test: {
    // Many tests start processes or compile kernels, which takes long where other tasks run beside.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
    // Tests start hundreds of processes from the sources, which read them stripped and compiled from here.
    env: {
      NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/node-compile', import.meta.url)),
    },
    maxWorkers: 2,
    ...(isSummarized && { reporters: ['minimal', summaryReporter] }),
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts', 'tooling/test/**/*.test.ts'],
          exclude: ['test/gpu/**', 'test/lifetimes/**', 'node_modules/**'],
        },
      },
      // Tests that force garbage collections.
      {
        extends: true,
        test: {
          name: 'lifetimes',
          include: ['test/lifetimes/**/*.test.ts'],
          execArgv: ['--expose-gc'],
          setupFiles: [fileURLToPath(new URL('./collect-garbage.ts', import.meta.url))],
        },
      },
    ],
  },
});
