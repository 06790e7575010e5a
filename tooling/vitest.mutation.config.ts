import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import tests, { collectingNodeFlags } from './vitest.config.ts';

const packages = fileURLToPath(new URL('../packages', import.meta.url));

/** Linked packages lead out of the runner's copy of the repository, to sources without faults. */
const sourcesOfPackages = [
  { find: /^@roofline\/([\w-]+)$/, replacement: `${packages}/$1/src/index.ts` },
  { find: /^@roofline\/([\w-]+)\/(host|parts|kernel-api|testing)$/, replacement: `${packages}/$1/src/$2.ts` },
];

/**
 * The tests that the mutation runner chooses from, of all packages at once and from the repository's root. Those
 * left out start processes of their own, which see none of its faults and take seconds, or load modules anew: whatever
 * runs as a module is loaded would count as seen by them.
 */
// Its projects would run each of these tests twice.
const { projects: _, ...options } = tests.test!;

export default defineConfig({
  ...tests,
  resolve: { ...tests.resolve, alias: sourcesOfPackages },
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
