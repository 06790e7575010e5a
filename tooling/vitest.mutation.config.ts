import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import tests, { collectingNodeFlags } from './vitest.config.ts';

/**
 * The tests that the mutation runner chooses from, of all packages at once and from the repository's root. Those
 * left out start processes of their own, which see none of its faults and take seconds, or reload modules: whatever
 * runs as a module is loaded would count as seen by them.
 */
// Its projects would run each of these tests twice.
const { projects: _, ...options } = tests.test!;

export default defineConfig({
  ...tests,
  test: {
    ...options,
    execArgv: collectingNodeFlags,
    setupFiles: [fileURLToPath(new URL('./collect-garbage.ts', import.meta.url))],
    include: ['packages/*/test/**/*.test.ts'],
    exclude: [
      '**/node_modules/**',
      'packages/*/test/gpu/**',
      'packages/reports/test/{text/compile.test.ts,html/charts.test.ts,html/browser.test.ts}',
      'packages/{reports/test/plot/png,flash-attn/test/cuda/flash-kernels}.test.ts',
      'packages/bench-harness/test/{bundle,commands,peer}/**',
      'packages/bench-harness/test/**/{first-op,registry,sweep,tables-compile}.test.ts',
    ],
  },
});
