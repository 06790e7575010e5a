import { defineConfig } from 'vitest/config';

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
    maxWorkers: 2,
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
        test: { name: 'lifetimes', include: ['test/lifetimes/**/*.test.ts'], execArgv: ['--expose-gc'] },
      },
    ],
  },
});
